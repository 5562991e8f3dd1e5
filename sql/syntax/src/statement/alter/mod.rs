//! `ALTER TABLE`, `ALTER VIEW` and `ALTER MATERIALIZED VIEW`.

mod reading;

use alluvium_dataflow::messages::wording::type_name;
use arrow::datatypes::{Field, Schema};
use sqlparser::ast::{
    self, AlterTable, AlterTableOperation, CreateTable, DropBehavior, Ident, ObjectName,
    RenameTableNameKind, TableConstraint,
};
use sqlparser::keywords::Keyword;
use sqlparser::parser::Parser;

use crate::error::{Error, Position, Result, SqlState, no_column};
use crate::name;
use crate::name::{fold, relation_name};
use crate::statement::constraint::check::Check;
use crate::statement::source::Source;
use crate::statement::statements::parse;
use crate::statement::syntax_error::syntax_error;
use crate::statement::{StatementKind, TableDefinition, ViewDefinition, lateness};
use crate::syntax;

/// A change of a relation.
#[derive(Clone, Debug)]
pub struct Alter {
    /// The relation.
    pub name: String,
    /// Where it is named.
    pub position: Position,
    /// Whether it may be missing.
    pub if_exists: bool,
    /// The kind of relation that the statement names.
    pub kind: AlteredKind,
    /// The change.
    pub change: Change,
    /// The statement's source.
    pub text: String,
}

/// The kind of relation that an ALTER names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AlteredKind {
    /// A table.
    Table,
    /// A view of any kind.
    View,
    /// A materialized view.
    MaterializedView,
}

/// A constraint that a table can get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Constraint {
    /// A primary key.
    PrimaryKey,
    /// Columns that no two rows have the same values in.
    Unique,
    /// A condition of its rows.
    Check,
}

impl Constraint {
    fn of(constraint: &TableConstraint) -> Option<Self> {
        match constraint {
            TableConstraint::PrimaryKey(_) => Some(Self::PrimaryKey),
            TableConstraint::Unique(_) => Some(Self::Unique),
            TableConstraint::Check(_) => Some(Self::Check),
            _ => None,
        }
    }
}

/// A change of a relation. Views can only be renamed, and resumed.
#[derive(Clone, Debug)]
pub enum Change {
    /// `RENAME TO name`
    Rename {
        /// The new name.
        to: String,
        /// Where it is.
        position: Position,
    },
    /// `RESUME`: a view that has failed is filled again.
    Resume,
    /// `RENAME COLUMN column TO name`
    RenameColumn {
        /// The column.
        column: String,
        /// Where it is named.
        position: Option<Position>,
        /// Its new name.
        to: String,
        /// Where that is.
        to_position: Option<Position>,
    },
    /// `ADD COLUMN column type …`
    AddColumn {
        /// The column, as the only one of a table.
        column: Box<TableDefinition>,
        /// Whether it may be there already.
        if_not_exists: bool,
        /// Where it is named.
        position: Option<Position>,
    },
    /// `DROP COLUMN column`
    DropColumn {
        /// The column.
        column: String,
        /// Whether it may be missing.
        if_exists: bool,
        /// Where it is named.
        position: Option<Position>,
    },
    /// `ADD [CONSTRAINT name] PRIMARY KEY (…)`, `UNIQUE (…)` or `CHECK (…)`
    AddConstraint {
        /// As a part of CREATE TABLE.
        text: String,
        /// Its kind.
        kind: Constraint,
        /// Where it stands.
        position: Option<Position>,
    },
}

/// Reads an ALTER of a table or view, whose source is `text` and starts at `start`.
pub(super) fn read(
    parser: &mut Parser<'_>,
    start: Option<Position>,
    text: &str,
) -> Result<StatementKind> {
    let alter = Parser::expect_keyword_is(parser, Keyword::ALTER);
    alter.map_err(syntax_error)?;
    let kind =
        match parser.parse_one_of_keywords(&[Keyword::TABLE, Keyword::VIEW, Keyword::MATERIALIZED])
        {
            Some(Keyword::TABLE) => AlteredKind::Table,
            Some(Keyword::VIEW) => AlteredKind::View,
            Some(_) if parser.parse_keyword(Keyword::VIEW) => AlteredKind::MaterializedView,
            _ => {
                let what = format!("ALTER {}", parser.peek_token_ref().token).to_uppercase();
                return Err(Error::not_supported(what, start));
            }
        };
    let (name, if_exists, change) = match kind {
        AlteredKind::Table => table(parser, start, text)?,
        AlteredKind::View | AlteredKind::MaterializedView => view(parser, start)?,
    };
    let (name, position) = relation_name(&name)?;
    let text = text.to_owned();
    Ok(StatementKind::Alter(Box::new(Alter { name, position, if_exists, kind, change, text })))
}

fn view(parser: &mut Parser<'_>, start: Option<Position>) -> Result<(ObjectName, bool, Change)> {
    let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
    let name = parser.parse_object_name(false).map_err(syntax_error)?;
    if parser.parse_keyword(Keyword::RESUME) {
        return Ok((name, if_exists, Change::Resume));
    }
    if !parser.parse_keywords(&[Keyword::RENAME, Keyword::TO]) {
        let what =
            "changing a view other than by RENAME TO or RESUME (write CREATE OR REPLACE VIEW)";
        return Err(Error::not_supported(what, start));
    }
    let to = parser.parse_object_name(false).map_err(syntax_error)?;
    let change = renamed(&name, &to)?;
    Ok((name, if_exists, change))
}

/// Another name in the same schema.
fn renamed(name: &ObjectName, to: &ObjectName) -> Result<Change> {
    let position = Position::of(to).unwrap_or(Position { line: 1, column: 1 });
    match to.0.as_slice() {
        [part] if let Some(to) = part.as_ident() => {
            let (schema, _) = name::split(&name::of_object(name)?);
            Ok(Change::Rename { to: name::qualified(Some(&schema), &fold(to)), position })
        }
        _ => {
            let message = "RENAME TO takes a name without a schema: a relation stays in its schema";
            Err(Error::new(message, position))
        }
    }
}

fn table(
    parser: &mut Parser<'_>,
    start: Option<Position>,
    text: &str,
) -> Result<(ObjectName, bool, Change)> {
    let ast::Statement::AlterTable(alter) =
        parser.parse_alter_table(false).map_err(syntax_error)?
    else {
        return Err(Error::not_supported("this ALTER TABLE", start));
    };
    let AlterTable {
        name,
        if_exists,
        only: false,
        operations,
        location: None,
        on_cluster: None,
        table_type: None,
        end_token: _,
    } = alter
    else {
        return Err(Error::not_supported("this ALTER TABLE", start));
    };
    let [operation] = &operations[..] else {
        return Err(Error::not_supported("several changes in one ALTER TABLE", start));
    };
    let change = match operation {
        AlterTableOperation::RenameTable { table_name: RenameTableNameKind::To(to) } => {
            renamed(&name, to)?
        }
        AlterTableOperation::RenameColumn { old_column_name, new_column_name } => {
            Change::RenameColumn {
                column: fold(old_column_name),
                position: Position::of_span(old_column_name.span),
                to: fold(new_column_name),
                to_position: Position::of_span(new_column_name.span),
            }
        }
        AlterTableOperation::AddColumn {
            column_keyword: _,
            if_not_exists,
            column_def,
            column_position: None,
        } => {
            let position = Position::of_span(column_def.name.span);
            let column = Box::new(added(&name, column_def, start, text)?);
            Change::AddColumn { column, if_not_exists: *if_not_exists, position }
        }
        AlterTableOperation::DropColumn {
            has_column_keyword: _,
            column_names,
            if_exists,
            drop_behavior,
        } => {
            let [column] = &column_names[..] else {
                return Err(Error::not_supported("several changes in one ALTER TABLE", start));
            };
            if *drop_behavior == Some(DropBehavior::Cascade) {
                return Err(Error::not_supported("DROP COLUMN … CASCADE", start));
            }
            let position = Position::of_span(column.span);
            Change::DropColumn { column: fold(column), if_exists: *if_exists, position }
        }
        AlterTableOperation::AddConstraint { constraint, not_valid: false }
            if let Some(kind) = Constraint::of(constraint) =>
        {
            let (text, position) = (constraint.to_string(), Position::of(constraint).or(start));
            Change::AddConstraint { text, kind, position }
        }
        other => {
            let other = other.to_string();
            let words: Vec<&str> = other
                .split_whitespace()
                .take_while(|word| word.chars().all(|letter| letter.is_ascii_uppercase()))
                .take(2)
                .collect();
            let what = format!("ALTER TABLE … {}", words.join(" "));
            return Err(Error::not_supported(what.trim(), start));
        }
    };
    Ok((name, if_exists, change))
}

/// A column that is added, as the only one of a table.
fn added(
    table: &ObjectName,
    column: &ast::ColumnDef,
    start: Option<Position>,
    text: &str,
) -> Result<TableDefinition> {
    let position = Position::of_span(column.name.span);
    let written = match (start, position) {
        (Some(start), Some(position)) => Source::new(text)?.from(start, position),
        _ => "",
    };
    let mut create: CreateTable =
        ast::helpers::stmt_create_table::CreateTableBuilder::new(ObjectName::from(vec![
            Ident::with_span(table_span(table), "table"),
        ]))
        .columns(vec![column.clone()])
        .build();
    if let Some(declared) = lateness::take(&mut create)?.first() {
        let what = "LATENESS or WATERMARK of a column that is added (create a table with it)";
        return Err(Error::not_supported(what, declared.position().or(position)));
    }
    syntax::normalize(&mut create)?;
    syntax::check_table(&create)?;
    let column = TableDefinition::read(create, &[], written)?;
    // Its DEFAULT is evaluated once for all rows that are there.
    if column.takes_values() {
        let what =
            "SERIAL, IDENTITY or nextval() of a column that is added (create a table with it)";
        return Err(Error::not_supported(what, position));
    }
    if !column.primary_key.is_empty() || !column.promised_key.is_empty() {
        let what = "a PRIMARY KEY of a column that is added (create a table with it)";
        return Err(Error::not_supported(what, position));
    }
    if !column.uniques.is_empty() {
        let what = "a UNIQUE of a column that is added (ADD UNIQUE once rows have their values)";
        return Err(Error::not_supported(what, position));
    }
    Ok(column)
}

fn table_span(table: &ObjectName) -> sqlparser::tokenizer::Span {
    sqlparser::ast::Spanned::span(table)
}

impl TableDefinition {
    /// The definition of the table as a change leaves it. Its text is a statement that creates a table as it then is.
    /// `None` if there is nothing to do. Says why if the change cannot be made, whatever rows the table has.
    pub fn altered(&self, change: &Change) -> Result<Option<TableDefinition>> {
        if !self.lateness.is_empty()
            && matches!(
                change,
                Change::AddColumn { .. } | Change::DropColumn { .. } | Change::AddConstraint { .. }
            )
        {
            let message = format!(
                "\"{}\" has LATENESS, and columns of such a table can only be renamed: create another table and insert the \
                 rows of this one",
                self.name
            );
            return Err(Error::new(message, None));
        }
        let text = self.written()?;
        let source = Source::new(&text)?;
        let mut expected = TableDefinition { text: String::new(), ..self.clone() };
        let mut fields: Vec<Field> =
            self.schema.fields().iter().map(|field| field.as_ref().clone()).collect();
        let text = match change {
            Change::Rename { to, .. } => {
                expected.name.clone_from(to);
                source.renamed(&name::written(to))
            }
            // It is not of a table.
            Change::Resume => return Ok(None),
            Change::RenameColumn { column, position, to, to_position } => {
                let number = self.column(column).map_err(|error| error.at(*position))?;
                self.check_free(to).map_err(|error| error.at(*to_position))?;
                fields[number] = fields[number].clone().with_name(to);
                let to = name::spelled(to);
                let checks = expected.checks.into_iter();
                expected.checks = checks.map(|check| check.with_renamed(column, &to)).collect();
                source.with_renamed_column(column, &to)
            }
            Change::AddColumn { column, if_not_exists, position } => {
                let field = column.schema.field(0);
                match self.check_free(field.name()) {
                    Err(_) if *if_not_exists => return Ok(None),
                    free => free.map_err(|error| error.at(*position))?,
                }
                fields.push(field.clone());
                expected.defaults.extend(column.defaults.iter().cloned());
                expected.generated.extend(column.generated.iter().copied());
                let number = fields.len() - 1;
                let checks = column.checks.iter().cloned();
                let checks =
                    checks.map(|check| Check { column: check.column.map(|_| number), ..check });
                // Those of columns come before those of the table.
                let of_table = expected.checks.iter().position(|check| check.column.is_none());
                let at = of_table.unwrap_or(expected.checks.len());
                expected.checks.splice(at..at, checks);
                source.with_column(&column.text)
            }
            Change::DropColumn { column, if_exists, position } => {
                let number = match self.column(column) {
                    Err(_) if *if_exists => return Ok(None),
                    found => found.map_err(|error| error.at(*position))?,
                };
                self.check_dropped(number).map_err(|error| error.at(*position))?;
                fields.remove(number);
                expected.defaults.remove(number);
                expected.generated.remove(number);
                let of_checks =
                    expected.checks.iter_mut().filter_map(|check| check.column.as_mut());
                of_checks.filter(|column| **column > number).for_each(|column| *column -= 1);
                let keys = expected.primary_key.iter_mut().chain(&mut expected.promised_key);
                let uniques = expected.uniques.iter_mut().flat_map(|unique| &mut unique.columns);
                let columns = keys.chain(uniques);
                columns.filter(|column| **column > number).for_each(|column| *column -= 1);
                source.without_column(column)
            }
            Change::AddConstraint { text, kind, position } => {
                if *kind == Constraint::PrimaryKey
                    && !(self.primary_key.is_empty() && self.promised_key.is_empty())
                {
                    let message = format!("\"{}\" has a PRIMARY KEY already", self.name);
                    return Err(Error::new(message, *position));
                }
                let text = source.with_column(text);
                // An error in the constraint is an error in the table that has it.
                if let Some(text) = &text
                    && let Some(Err(Error { message, sqlstate, .. })) = parse(text).next()
                {
                    return Err(Error::new(message, *position).with_sqlstate(sqlstate));
                }
                if let Some(altered) = text.as_deref().and_then(defined) {
                    expected.primary_key = altered.primary_key;
                    expected.promised_key = altered.promised_key;
                    expected.checks = altered.checks;
                    expected.uniques = altered.uniques;
                    let key = expected.primary_key.iter().chain(&expected.promised_key);
                    key.for_each(|column| fields[*column].set_nullable(false));
                }
                text
            }
        };
        expected.schema = Schema::new(fields).into();
        let altered = text.as_deref().and_then(defined).filter(|altered| altered.says(&expected));
        let altered = altered.ok_or_else(|| {
            let message = format!(
                "the statement that created \"{}\" cannot be rewritten for this: create another table and insert the rows \
                 of this one",
                self.name
            );
            Error::new(message, None)
        })?;
        TableDefinition::columns(&altered.schema)?;
        Ok(Some(TableDefinition { position: self.position, ..altered }))
    }

    /// A statement that creates the table.
    fn written(&self) -> Result<String> {
        if !self.text.is_empty() {
            return Ok(self.text.clone());
        }
        let columns = self.schema.fields().iter().map(|field| {
            let not_null = if field.is_nullable() { "" } else { " NOT NULL" };
            let (name, data_type) = (name::spelled(field.name()), type_name(field.data_type()));
            format!("{name} {data_type}{not_null}")
        });
        let columns = columns.collect::<Vec<_>>().join(", ");
        let text = format!("CREATE TABLE {} ({columns})", name::written(&self.name));
        match defined(&text) {
            Some(read) if read.says(self) => Ok(text),
            _ => {
                let message = format!(
                    "\"{}\" has the columns of a file or a query, with a type that SQL does not spell: create another table \
                     and insert the rows of this one",
                    self.name
                );
                Err(Error::new(message, None))
            }
        }
    }

    /// Whether another definition is of the same table, however it is written.
    fn says(&self, other: &TableDefinition) -> bool {
        let parts = |of: &TableDefinition| {
            let keys = (of.primary_key.clone(), of.promised_key.clone());
            let rest = (of.options.clone(), of.connectors.len(), of.lateness.clone());
            let checks: Vec<_> = of.checks.iter().map(Check::says).collect();
            let values = (of.defaults.clone(), of.generated.clone(), checks, of.uniques.clone());
            (of.name.clone(), of.schema.clone(), keys, values, rest)
        };
        parts(self) == parts(other)
    }

    fn column(&self, name: &str) -> Result<usize> {
        let fields = self.schema.fields();
        fields.iter().position(|field| field.name() == name).ok_or_else(|| {
            let names = fields.iter().map(|field| field.name().as_str());
            no_column(name, Some(&self.name), names)
        })
    }

    fn check_free(&self, column: &str) -> Result<()> {
        match self.column(column) {
            Err(_) => Ok(()),
            Ok(_) => {
                let message = format!("\"{}\" has a column \"{column}\" already", self.name);
                Err(Error::new(message, None).with_sqlstate(SqlState::DUPLICATE_COLUMN))
            }
        }
    }

    fn check_dropped(&self, number: usize) -> Result<()> {
        let (column, table) = (self.schema.field(number).name(), &self.name);
        let is_key = self.primary_key.contains(&number) || self.promised_key.contains(&number);
        let message = if is_key {
            format!("column \"{column}\" is part of the PRIMARY KEY of \"{table}\" and stays")
        } else if self.uniques.iter().any(|unique| unique.columns.contains(&number)) {
            format!("column \"{column}\" is part of a UNIQUE of \"{table}\" and stays")
        } else if let Some(check) = self.checks.iter().find(|check| check.reads(column)) {
            let condition = &check.condition;
            format!("column \"{column}\" is part of a CHECK of \"{table}\" and stays: {condition}")
        } else if self.schema.fields().len() == 1 {
            format!("column \"{column}\" is the only one of \"{table}\": DROP the table")
        } else {
            return Ok(());
        };
        Err(Error::new(message, None))
    }
}

impl ViewDefinition {
    /// The same view under another name.
    pub fn renamed(&self, name: &str) -> Result<ViewDefinition> {
        let text = Source::new(&self.text)?.renamed(&name::written(name));
        match text.as_deref().and_then(only) {
            Some(StatementKind::CreateView(view)) if view.name == name => {
                Ok(ViewDefinition { position: self.position, ..view })
            }
            _ => {
                let message = format!(
                    "the statement that created \"{}\" cannot be rewritten for this: create another view and drop this one",
                    self.name
                );
                Err(Error::new(message, None))
            }
        }
    }
}

/// The table that a text creates.
fn defined(text: &str) -> Option<TableDefinition> {
    match only(text)? {
        StatementKind::CreateTable(table) => Some(table),
        _ => None,
    }
}

/// The one statement that a text is.
pub(super) fn only(text: &str) -> Option<StatementKind> {
    let mut statements = parse(text);
    match (statements.next(), statements.next()) {
        (Some(Ok(statement)), None) => Some(statement.kind),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn altered(create: &str, alter: &str) -> std::result::Result<String, String> {
        let table = defined(create).expect("a table");
        let Some(StatementKind::Alter(alter)) = only(alter) else { panic!("{alter}") };
        match table.altered(&alter.change) {
            Ok(Some(table)) => Ok(table.text),
            Ok(None) => Ok("as it was".to_owned()),
            Err(error) => Err(error.message),
        }
    }

    /// The comments and brackets of the statement stay, and commas inside of types and expressions end no column.
    #[test]
    fn a_definition_is_edited_in_its_text() {
        let create = "CREATE TABLE IF NOT EXISTS t (\n  a INT PRIMARY KEY, -- first, and (only) key\n  \
                      m MAP<VARCHAR, INT>,\n  d DECIMAL(10, 2) DEFAULT (1 < 2)::INT, \"B,(\" TEXT\n) WITH ('append_only' = 'false')";
        let add = altered(
            create,
            "ALTER TABLE t ADD COLUMN c BIGINT NOT NULL DEFAULT 1 + (2 * 3) -- why",
        )
        .unwrap();
        assert!(
            add.contains("\"B,(\" TEXT, c BIGINT NOT NULL DEFAULT 1 + (2 * 3)\n) WITH"),
            "{add}"
        );
        let again = altered(&add, "ALTER TABLE t ADD COLUMN IF NOT EXISTS c TEXT").unwrap();
        assert_eq!(again, "as it was");
        let dropped = altered(&add, "ALTER TABLE t DROP COLUMN m").unwrap();
        assert!(!dropped.contains("MAP") && dropped.contains("-- first"), "{dropped}");
        let renamed = altered(&add, "ALTER TABLE t RENAME COLUMN \"B,(\" TO \"select\"").unwrap();
        assert!(renamed.contains(", \"select\" TEXT,"), "{renamed}");
        let renamed = altered(&renamed, "ALTER TABLE t RENAME TO \"T 2\"").unwrap();
        assert!(renamed.starts_with("CREATE TABLE IF NOT EXISTS \"T 2\" ("), "{renamed}");
    }

    #[test]
    fn the_first_column_goes_and_constraints_follow_names() {
        let create = "CREATE TABLE t (a INT, b INT, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL '1' HOUR, PRIMARY KEY (b))";
        let refused = altered(create, "ALTER TABLE t DROP a").unwrap_err();
        assert!(refused.contains("LATENESS"), "{refused}");
        let renamed = altered(create, "ALTER TABLE t RENAME at TO \"The time\"").unwrap();
        assert!(
            renamed.contains("WATERMARK FOR \"The time\" AS \"The time\" - INTERVAL"),
            "{renamed}"
        );
        let renamed = altered(&renamed, "ALTER TABLE t RENAME COLUMN b TO key_of_it").unwrap();
        assert!(renamed.ends_with("PRIMARY KEY (key_of_it))"), "{renamed}");
        let create =
            "CREATE TABLE t (a INT, b INT, FOREIGN KEY (a) REFERENCES x (a), PRIMARY KEY (b))";
        let dropped = altered(create, "ALTER TABLE t DROP a").unwrap();
        assert!(dropped.starts_with("CREATE TABLE t (b INT, FOREIGN"), "{dropped}");
        let kept = altered(&dropped, "ALTER TABLE t DROP COLUMN b").unwrap_err();
        assert!(kept.contains("PRIMARY KEY"), "{kept}");
    }

    #[test]
    fn a_table_without_a_text_is_written() {
        let types = [
            "BOOLEAN",
            "TINYINT",
            "SMALLINT",
            "INTEGER",
            "BIGINT",
            "INT UNSIGNED",
            "FLOAT",
            "DOUBLE",
            "DECIMAL(18, 3)",
            "VARCHAR",
            "BLOB",
            "DATE",
            "TIME",
            "TIMESTAMP",
            "TIMESTAMP WITH TIME ZONE",
            "INTEGER[]",
            "STRUCT(a INTEGER, b VARCHAR[])",
            "MAP<VARCHAR, INTEGER>",
        ];
        let is_refused = |data_type: &&str| {
            let create = format!("CREATE TABLE t (a {data_type}, \"B\" INT)");
            let table = defined(&create).expect(data_type);
            TableDefinition { text: String::new(), ..table }.written().is_err()
        };
        let refused: Vec<&str> = types.into_iter().filter(is_refused).collect();
        assert!(refused.is_empty(), "{refused:?}");
    }

    #[test]
    fn a_view_is_renamed_in_its_text() {
        let create = "CREATE MATERIALIZED VIEW IF NOT EXISTS v (a) AS SELECT v.a FROM t AS v";
        let Some(StatementKind::CreateView(view)) = only(create) else { panic!("a view") };
        let renamed = view.renamed("w").unwrap();
        assert_eq!(
            renamed.text,
            "CREATE MATERIALIZED VIEW IF NOT EXISTS w (a) AS SELECT v.a FROM t AS v"
        );
    }
}
