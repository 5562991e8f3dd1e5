//! Names of columns that are computed and have no alias: those of DuckDB, `(a + 1)`, `sum(x)`, `count_star()`, and `f` of the
//! field `st.f`.
//!
//! DuckDB quotes names of functions that are keywords to it, as in `"year"(d)`. Here they are `year(d)`.

use std::collections::HashSet;
use std::fmt::{self, Write};

use sqlparser::ast::{
    AccessExpr, BinaryOperator, CastKind, Distinct, DuplicateTreatment, Expr, Function,
    FunctionArg, FunctionArgExpr, FunctionArgumentClause, FunctionArguments, Ident, OrderBy,
    OrderByExpr, OrderByKind, Query, Select, SelectItem, SetExpr, Subscript, TableFactor,
    UnaryOperator, Value, WindowSpec, WindowType,
};

use crate::statement::fold;

/// The longest name, in bytes.
const LONGEST: usize = 200;

/// Functions of the session whose names are those of their columns if they are called without brackets, as in DuckDB and Postgres.
const OF_SESSION: [&str; 6] =
    ["current_catalog", "current_role", "current_schema", "current_user", "session_user", "user"];

/// Names the columns of a SELECT that are computed and have no alias.
pub(super) fn name_columns(select: &mut Select) {
    let mut relations = Some(HashSet::new());
    for from in &select.from {
        let joined = from.joins.iter().map(|join| &join.relation);
        std::iter::once(&from.relation).chain(joined).for_each(|of| add_names(of, &mut relations));
    }
    name_all(&mut select.projection, relations.as_ref());
}

/// Names columns that are computed and have no alias.
pub(super) fn name_items(items: &mut [SelectItem]) {
    name_all(items, None);
}

/// Adds the name of a relation, or of those that it joins; `None` if they may have others.
fn add_names(relation: &TableFactor, names: &mut Option<HashSet<String>>) {
    match relation {
        TableFactor::Table { alias: Some(alias), .. }
        | TableFactor::Derived { alias: Some(alias), .. }
        | TableFactor::UNNEST { alias: Some(alias), .. }
        | TableFactor::NestedJoin { alias: Some(alias), .. } => {
            if let Some(names) = names {
                names.insert(fold(&alias.name));
            }
        }
        TableFactor::Table { name, alias: None, .. } => {
            let name = name.0.last().and_then(|part| part.as_ident()).map(fold);
            if let Some(names) = names {
                names.extend(name);
            }
        }
        TableFactor::NestedJoin { table_with_joins, alias: None } => {
            add_names(&table_with_joins.relation, names);
            table_with_joins.joins.iter().for_each(|join| add_names(&join.relation, names));
        }
        TableFactor::Derived { alias: None, .. } | TableFactor::UNNEST { alias: None, .. } => {}
        _ => *names = None,
    }
}

/// The name of the field of a struct, `st.f` or `t.st.f`, which names a column if a relation is called `st`.
fn of_field<'a>(expression: &'a Expr, relations: Option<&HashSet<String>>) -> Option<&'a Ident> {
    match expression {
        Expr::CompoundIdentifier(parts) => match &parts[..] {
            [first, field] if !relations?.contains(&fold(first)) => Some(field),
            [_, _, .., field] => Some(field),
            _ => None,
        },
        _ => None,
    }
}

fn name_all(items: &mut [SelectItem], relations: Option<&HashSet<String>>) {
    let mut taken: HashSet<String> = HashSet::new();
    for item in items.iter() {
        match item {
            SelectItem::UnnamedExpr(expression) if of_field(expression, relations).is_none() => {
                taken.extend(of_column(expression).map(|name| name.value.to_lowercase()));
            }
            SelectItem::ExprWithAlias { alias, .. } => {
                taken.insert(alias.value.to_lowercase());
            }
            _ => {}
        }
    }
    for item in items {
        let SelectItem::UnnamedExpr(expression) = item else { continue };
        let name = match of_field(expression, relations) {
            Some(field) => Some(fold(field)),
            None if of_column(expression).is_some() => None,
            None => name_of(expression),
        };
        let Some(name) = name else { continue };
        let mut unique = name.clone();
        let mut number = 1;
        while !taken.insert(unique.to_lowercase()) {
            unique = format!("{name}_{number}");
            number += 1;
        }
        let expr = std::mem::replace(expression, Expr::value(Value::Null));
        *item = SelectItem::ExprWithAlias { expr, alias: Ident::with_quote('"', unique) };
    }
}

/// Names the columns of a SELECT DISTINCT, and orders it by those names in place of the same expressions: an order by an
/// expression is one of columns that are not there any more.
pub(super) fn name_order(query: &mut Query) {
    let SetExpr::Select(select) = query.body.as_mut() else { return };
    let Some(OrderBy { kind: OrderByKind::Expressions(keys), .. }) = &mut query.order_by else {
        return;
    };
    if !matches!(select.distinct, Some(Distinct::Distinct)) {
        return;
    }
    let unnamed: Vec<Option<String>> = select
        .projection
        .iter()
        .map(|item| match item {
            SelectItem::UnnamedExpr(expression) => Some(expression.to_string()),
            _ => None,
        })
        .collect();
    name_columns(select);
    for key in keys {
        let written = key.expr.to_string();
        let places = select.projection.iter().zip(&unnamed);
        let named = places.filter(|(_, expression)| expression.as_ref() == Some(&written));
        for (item, _) in named {
            if let SelectItem::ExprWithAlias { alias, .. } = item {
                key.expr = Expr::Identifier(alias.clone());
                break;
            }
        }
    }
}

/// The name of a column that is selected as it is.
fn of_column(mut expression: &Expr) -> Option<&Ident> {
    loop {
        expression = match expression {
            Expr::Nested(inner) | Expr::Collate { expr: inner, .. } => inner,
            Expr::Identifier(name) => return Some(name),
            Expr::CompoundIdentifier(parts) => return parts.last(),
            _ => return None,
        }
    }
}

/// The name of a computed column; `None` for one that may become several columns, as UNNEST of structs does.
pub fn name_of(expression: &Expr) -> Option<String> {
    let (name, has_unnest) = text_of(expression);
    (!has_unnest).then_some(name)
}

/// The name of a column that is computed with UNNEST.
pub fn unnested_name_of(expression: &Expr) -> Option<String> {
    let (name, has_unnest) = text_of(expression);
    (has_unnest && of_column(expression).is_none()).then_some(name)
}

/// A computed column as DuckDB writes it, and whether it has UNNEST.
fn text_of(expression: &Expr) -> (String, bool) {
    let mut name = Name { text: String::new() };
    // Only the limit on its length makes writing fail.
    let is_whole = name.expression(expression).is_ok();
    if !is_whole {
        let mut end = name.text.len().min(LONGEST);
        while !name.text.is_char_boundary(end) {
            end -= 1;
        }
        name.text.truncate(end);
        name.text.push('…');
    }
    let has_unnest = |text: &str| text.to_lowercase().contains("unnest");
    let has_unnest = match is_whole {
        true => has_unnest(&name.text),
        false => has_unnest(&expression.to_string()),
    };
    (name.text, has_unnest)
}

struct Name {
    text: String,
}

impl Write for Name {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.text.push_str(text);
        if self.text.len() > LONGEST { Err(fmt::Error) } else { Ok(()) }
    }
}

impl Name {
    fn expression(&mut self, expression: &Expr) -> fmt::Result {
        match expression {
            Expr::Nested(inner) | Expr::Collate { expr: inner, .. } => self.expression(inner),
            Expr::Identifier(name) => self.write_str(&name.value),
            Expr::CompoundIdentifier(parts) => {
                self.list(parts, ".", |name, part| name.write_str(&part.value))
            }
            Expr::Value(value) => match &value.value {
                Value::Boolean(value) => write!(self, "{value}"),
                value => write!(self, "{value}"),
            },
            Expr::BinaryOp { left, op, right } => self.operator(left, op, right),
            Expr::UnaryOp { op: UnaryOperator::Minus, expr } => match expr.as_ref() {
                Expr::Value(_) => self.around("-", expr, ""),
                _ => self.around("(-(", expr, "))"),
            },
            Expr::UnaryOp { op: UnaryOperator::Not, expr } => self.around("(NOT ", expr, ")"),
            Expr::Cast { kind, expr, data_type, .. } => {
                let kind = match kind {
                    CastKind::TryCast | CastKind::SafeCast => "TRY_CAST(",
                    CastKind::Cast | CastKind::DoubleColon => "CAST(",
                };
                self.around(kind, expr, " AS ")?;
                write!(self, "{})", type_name(&data_type.to_string()))
            }
            Expr::TypedString(typed) => {
                write!(self, "CAST({} AS {})", typed.value, type_name(&typed.data_type.to_string()))
            }
            Expr::IsNull(expr) => self.around("(", expr, " IS NULL)"),
            Expr::IsNotNull(expr) => self.around("(", expr, " IS NOT NULL)"),
            Expr::Between { expr, negated, low, high } => {
                self.around(if *negated { "(NOT (" } else { "(" }, expr, " BETWEEN ")?;
                self.around("", low, " AND ")?;
                self.around("", high, if *negated { "))" } else { ")" })
            }
            Expr::InList { expr, list, negated } => {
                self.around(if *negated { "(NOT (" } else { "(" }, expr, " IN (")?;
                self.list(list, ", ", Name::expression)?;
                self.write_str(if *negated { ")))" } else { "))" })
            }
            Expr::Like { negated, expr, pattern, escape_char: None, .. } => {
                self.around("(", expr, if *negated { " !~~ " } else { " ~~ " })?;
                self.around("", pattern, ")")
            }
            Expr::ILike { negated, expr, pattern, escape_char: None, .. } => {
                self.around("(", expr, if *negated { " !~~* " } else { " ~~* " })?;
                self.around("", pattern, ")")
            }
            Expr::Case { operand, conditions, else_result, .. } => {
                self.write_str("CASE ")?;
                for when in conditions {
                    self.write_str(" WHEN (")?;
                    match operand {
                        Some(operand) => {
                            self.operator(operand, &BinaryOperator::Eq, &when.condition)?;
                        }
                        None => self.expression(&when.condition)?,
                    }
                    self.around(") THEN (", &when.result, ")")?;
                }
                match else_result {
                    Some(result) => self.around(" ELSE ", result, " END"),
                    None => self.write_str(" ELSE NULL END"),
                }
            }
            Expr::Extract { field, expr, .. } => {
                write!(self, "date_part('{}', ", field.to_string().to_uppercase())?;
                self.around("", expr, ")")
            }
            Expr::Substring { expr, substring_from, substring_for, .. } => {
                let places = [substring_from, substring_for];
                let places = places.into_iter().flatten().map(Box::as_ref);
                self.call("substring", std::iter::once(expr.as_ref()).chain(places))
            }
            Expr::Position { expr, r#in } => self.call("position", [r#in.as_ref(), expr]),
            Expr::Trim { trim_where: None, trim_what: None, trim_characters: None, expr } => {
                self.call("trim", [expr.as_ref()])
            }
            Expr::Ceil { expr, .. } => self.call("ceil", [expr.as_ref()]),
            Expr::Floor { expr, .. } => self.call("floor", [expr.as_ref()]),
            Expr::Array(array) => self.call("list_value", &array.elem),
            Expr::Dictionary(fields) => {
                self.write_str("struct_pack(")?;
                self.list(fields, ", ", |name, field| {
                    write!(name, "{} := ", field.key.value)?;
                    name.expression(&field.value)
                })?;
                self.write_str(")")
            }
            Expr::CompoundFieldAccess { root, access_chain } => self.access(root, access_chain),
            Expr::Function(function) => self.function(function),
            other => write!(self, "{other}"),
        }
    }

    fn around(&mut self, before: &str, expression: &Expr, behind: &str) -> fmt::Result {
        self.write_str(before)?;
        self.expression(expression)?;
        self.write_str(behind)
    }

    fn list<'a, T: 'a>(
        &mut self,
        items: impl IntoIterator<Item = &'a T>,
        separator: &str,
        mut write: impl FnMut(&mut Name, &'a T) -> fmt::Result,
    ) -> fmt::Result {
        for (place, item) in items.into_iter().enumerate() {
            if place > 0 {
                self.write_str(separator)?;
            }
            write(self, item)?;
        }
        Ok(())
    }

    fn call<'a>(
        &mut self,
        function: &str,
        arguments: impl IntoIterator<Item = &'a Expr>,
    ) -> fmt::Result {
        write!(self, "{function}(")?;
        self.list(arguments, ", ", Name::expression)?;
        self.write_str(")")
    }

    /// AND and OR of more than two are one list.
    fn operator(&mut self, left: &Expr, op: &BinaryOperator, right: &Expr) -> fmt::Result {
        let is_chain = matches!(op, BinaryOperator::And | BinaryOperator::Or);
        let mut operands = vec![right];
        let mut first = left;
        while is_chain
            && let Expr::BinaryOp { left, op: inner, right } = first
            && inner == op
        {
            operands.push(right);
            first = left;
        }
        self.around("(", first, "")?;
        for operand in operands.into_iter().rev() {
            match op {
                BinaryOperator::NotEq => self.write_str(" != ")?,
                BinaryOperator::PGExp => self.write_str(" ^ ")?,
                op => write!(self, " {op} ")?,
            }
            self.expression(operand)?;
        }
        self.write_str(")")
    }

    fn access(&mut self, root: &Expr, chain: &[AccessExpr]) -> fmt::Result {
        match root {
            Expr::Identifier(_) | Expr::CompoundIdentifier(_) => self.expression(root)?,
            _ if matches!(chain.first(), Some(AccessExpr::Dot(_))) => {
                self.around("(", root, ")")?
            }
            _ => self.expression(root)?,
        }
        for access in chain {
            match access {
                AccessExpr::Dot(field) => self.around(".", field, "")?,
                AccessExpr::Subscript(Subscript::Index { index }) => {
                    self.around("[", index, "]")?
                }
                AccessExpr::Subscript(Subscript::Slice { lower_bound, upper_bound, stride }) => {
                    self.write_str("[")?;
                    for (place, bound) in [lower_bound, upper_bound, stride].iter().enumerate() {
                        if place == 1 || (place == 2 && bound.is_some()) {
                            self.write_str(":")?;
                        }
                        if let Some(bound) = bound {
                            self.expression(bound)?;
                        }
                    }
                    self.write_str("]")?;
                }
            }
        }
        Ok(())
    }

    fn function(&mut self, function: &Function) -> fmt::Result {
        let name = match function.name.to_string().to_lowercase() {
            name if name == "coalesce" => "COALESCE".to_owned(),
            // A list that is written out is a call of this function.
            name if name == "make_array" => "list_value".to_owned(),
            name => name,
        };
        match &function.args {
            FunctionArguments::List(list)
                if name == "count"
                    && function.over.is_none()
                    && matches!(
                        list.args[..],
                        [FunctionArg::Unnamed(FunctionArgExpr::Wildcard)]
                    ) =>
            {
                self.write_str("count_star()")?;
            }
            FunctionArguments::List(list) => {
                write!(self, "{name}(")?;
                if list.duplicate_treatment == Some(DuplicateTreatment::Distinct) {
                    self.write_str("DISTINCT ")?;
                }
                self.list(&list.args, ", ", Name::argument)?;
                for clause in &list.clauses {
                    match clause {
                        FunctionArgumentClause::OrderBy(order) => self.order(order)?,
                        other => write!(self, " {other}")?,
                    }
                }
                self.write_str(")")?;
            }
            FunctionArguments::None if OF_SESSION.contains(&name.as_str()) => {
                self.write_str(&name)?;
            }
            FunctionArguments::None => write!(self, "{name}()")?,
            FunctionArguments::Subquery(query) => write!(self, "{name}({query})")?,
        }
        if !function.within_group.is_empty() {
            self.write_str(" WITHIN GROUP (")?;
            self.list(&function.within_group, ", ", Name::sort_key)?;
            self.write_str(")")?;
        }
        if let Some(condition) = &function.filter {
            self.around(" FILTER (WHERE ", condition, ")")?;
        }
        if let Some(treatment) = &function.null_treatment {
            write!(self, " {treatment}")?;
        }
        match &function.over {
            None => Ok(()),
            Some(WindowType::NamedWindow(window)) => write!(self, " OVER {window}"),
            Some(WindowType::WindowSpec(window)) => self.window(window),
        }
    }

    fn argument(&mut self, argument: &FunctionArg) -> fmt::Result {
        match argument {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => self.expression(value),
            // `count(*) OVER`, as DuckDB writes it.
            FunctionArg::Unnamed(FunctionArgExpr::Wildcard) => Ok(()),
            other => write!(self, "{other}"),
        }
    }

    fn order(&mut self, order: &[OrderByExpr]) -> fmt::Result {
        self.write_str(" ORDER BY ")?;
        self.list(order, ", ", Name::sort_key)
    }

    fn sort_key(&mut self, key: &OrderByExpr) -> fmt::Result {
        self.expression(&key.expr)?;
        write!(self, "{}", key.options)
    }

    fn window(&mut self, window: &WindowSpec) -> fmt::Result {
        self.write_str(" OVER (")?;
        let mut is_first = true;
        if !window.partition_by.is_empty() {
            self.write_str("PARTITION BY ")?;
            self.list(&window.partition_by, ", ", Name::expression)?;
            is_first = false;
        }
        if !window.order_by.is_empty() {
            self.write_str(if is_first { "ORDER BY " } else { " ORDER BY " })?;
            self.list(&window.order_by, ", ", Name::sort_key)?;
            is_first = false;
        }
        if let Some(frame) = &window.window_frame {
            let space = if is_first { "" } else { " " };
            write!(self, "{space}{} ", frame.units)?;
            match &frame.end_bound {
                Some(end) => write!(self, "BETWEEN {} AND {end}", frame.start_bound)?,
                None => write!(self, "{}", frame.start_bound)?,
            }
        }
        self.write_str(")")
    }
}

/// A type as DuckDB writes it.
fn type_name(written: &str) -> String {
    match written.to_uppercase().as_str() {
        "INT" | "INT4" => "INTEGER".to_owned(),
        "TEXT" | "STRING" | "CHARACTER VARYING" => "VARCHAR".to_owned(),
        "DOUBLE PRECISION" | "FLOAT8" => "DOUBLE".to_owned(),
        "BYTEA" => "BLOB".to_owned(),
        other => other.to_owned(),
    }
}
