//! Why state is kept for ever.

use std::fmt;
use std::sync::Arc;

use arrow::datatypes::Schema;
use datafusion_expr::Operator;
use datafusion_physical_expr::PhysicalExpr;
use datafusion_physical_expr::expressions::BinaryExpr;

use crate::expression::{self, Expression};

/// Why no lower bound is known: a sentence, the part of the text that it is about, and a remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    sentence: Arc<str>,
    subject: Subject,
    remedy: Option<Arc<str>>,
}

/// The part of a view's text that a reason is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    /// The clause that the operator with the state stands for.
    Clause,
    /// A column of a table or of a materialized view.
    Column {
        /// The relation.
        relation: String,
        /// The column's name.
        column: String,
    },
    /// An expression.
    Expression(Parts),
}

/// The parts of an expression, by which it is found again: functions and literals have other names once it is planned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Parts {
    /// The names of its columns, sorted.
    pub(crate) columns: Vec<String>,
    /// Its arithmetic operators, sorted.
    pub(crate) operators: Vec<String>,
}

impl Reason {
    /// A reason that is about the operator itself.
    pub(crate) fn new(sentence: impl Into<String>) -> Self {
        Self { sentence: sentence.into().into(), subject: Subject::Clause, remedy: None }
    }

    /// The same, with a remedy.
    pub(crate) fn with_remedy(self, remedy: impl Into<String>) -> Self {
        Self { remedy: Some(remedy.into().into()), ..self }
    }

    /// The same, of a column of a relation.
    pub(super) fn of_column(self, relation: &str, column: &str) -> Self {
        let (relation, column) = (relation.to_owned(), column.to_owned());
        Self { subject: Subject::Column { relation, column }, ..self }
    }

    /// The same, of an expression over columns of `schema`.
    pub(super) fn of_expression(self, expression: &Expression, schema: &Schema) -> Self {
        Self { subject: Subject::Expression(Parts::of(expression, schema)), ..self }
    }

    /// A column of a table does not have LATENESS.
    pub(crate) fn no_lateness(table: &str, column: &str) -> Self {
        Self::new(format!("{table}.{column} has no LATENESS"))
            .of_column(table, column)
            .with_remedy(format!("add LATENESS to {table}.{column} in CREATE TABLE"))
    }

    /// The state is sorted in a way in which the column that has a bound cannot be found.
    pub(crate) fn unsorted(column: &str) -> Self {
        Self::new(format!("{column} stands behind a column of no fixed width"))
            .with_remedy(format!("write {column} before the other columns"))
    }

    /// A table keeps its contents.
    pub fn of_table() -> Self {
        Self::new("a table keeps its contents, whoever reads them").with_remedy(
            "if only views read it, say 'materialized' = 'false' in CREATE TABLE, without a PRIMARY KEY",
        )
    }

    /// An index that a statement created keeps all rows.
    pub fn of_index() -> Self {
        Self::new("an index has all rows of its relation")
            .with_remedy("DROP INDEX if no query reads it")
    }

    /// An index has other readers.
    pub(crate) fn shared() -> Self {
        Self::new("other views may read the index, and need all of it")
    }

    /// Its subject.
    pub(crate) fn subject(&self) -> &Subject {
        &self.subject
    }

    /// A remedy: an instruction.
    pub fn remedy(&self) -> Option<&str> {
        self.remedy.as_deref()
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.sentence)
    }
}

impl Parts {
    /// The parts of an expression over columns of `schema`.
    fn of(expression: &Expression, schema: &Schema) -> Self {
        let mut parts = Self::default();
        expression::for_each_column(expression, &mut |column| {
            parts.columns.push(schema.field(column).name().to_lowercase());
        });
        collect_operators(expression.as_ref(), &mut parts.operators);
        parts.sorted()
    }

    /// The same in the order in which parts are compared.
    pub(crate) fn sorted(mut self) -> Self {
        self.columns.sort_unstable();
        self.operators.sort_unstable();
        self
    }
}

fn collect_operators(expression: &dyn PhysicalExpr, operators: &mut Vec<String>) {
    if let Some(binary) = expression.downcast_ref::<BinaryExpr>()
        && let operator @ (Operator::Plus
        | Operator::Minus
        | Operator::Multiply
        | Operator::Divide
        | Operator::Modulo) = binary.op()
    {
        operators.push(operator.to_string());
    }
    expression
        .children()
        .into_iter()
        .for_each(|child| collect_operators(child.as_ref(), operators));
}
