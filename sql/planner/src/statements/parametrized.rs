//! Literals of a statement as parameters, so that statements that differ in these only have one plan.
//!
//! A literal is a parameter only where its value alone matters, and not its type or name: a column is compared with it in
//! WHERE, or it is written to a column. There a parameter is of the column's type. An integer may be one for columns of integers
//! and decimals, if they hold it exactly, and a text for columns of texts. An integer that UPDATE adds to a column, subtracts
//! from it or multiplies it by may be one as well, and is a BIGINT as the literal is. All others stay what they are.

use arrow::datatypes::DataType;
use datafusion_common::ScalarValue;
use sqlparser::ast::{
    self, BinaryOperator, CastKind, Expr, SetExpr, UnaryOperator, Value, ValueWithSpan,
};

use alluvium_sql_syntax::error::Position;
use alluvium_sql_syntax::statement::{Literal, LiteralValue, Shape, Statement, StatementKind};

/// A statement with parameters in the places of some of its literals.
#[derive(Clone, Debug)]
pub struct Parametrized {
    /// The statement. Its own parameters are followed by one for each literal of its shape; those of literals that
    /// have stayed do not occur.
    pub kind: StatementKind,
    /// For each literal of its shape whether it has become a parameter.
    pub is_open: Vec<bool>,
}

/// The statement with parameters in the places of those literals that may be ones, and that `may_open`. It has `parameters` of
/// its own.
pub fn parametrized(
    statement: &Statement,
    shape: &Shape,
    parameters: usize,
    may_open: &dyn Fn(usize) -> bool,
) -> Parametrized {
    let literals = shape.literals();
    let mut opening = Opening {
        literals,
        begin: statement.position,
        parameters,
        may_open,
        is_open: vec![false; literals.len()],
    };
    let mut kind = statement.kind.clone();
    match &mut kind {
        StatementKind::Query(query) => {
            if let SetExpr::Select(select) = query.body.as_mut() {
                opening.conditions(&mut select.selection);
            }
        }
        StatementKind::Insert(insert) => {
            let body = insert.source.as_mut().map(|source| source.body.as_mut());
            if let Some(SetExpr::Values(values)) = body {
                for value in values.rows.iter_mut().flat_map(|row| &mut row.content) {
                    opening.literal(value);
                }
            }
        }
        StatementKind::Update(update) => {
            for assignment in &mut update.assignments {
                opening.assigned(&mut assignment.value);
            }
            opening.conditions(&mut update.selection);
        }
        StatementKind::Delete(delete) => opening.conditions(&mut delete.selection),
        _ => {}
    }
    Parametrized { kind, is_open: opening.is_open }
}

/// Whether literals like this may become parameters of a type.
pub fn may_become(value: &LiteralValue, data_type: &DataType) -> bool {
    match value {
        LiteralValue::Integer(_) => data_type.is_integer() || data_type.is_decimal(),
        LiteralValue::Text(_) => *data_type == DataType::Utf8,
    }
}

/// The value for a parameter of a type that a literal [may become](may_become); `None` if the type does not hold it.
pub fn literal_value(value: &LiteralValue, data_type: &DataType) -> Option<ScalarValue> {
    match value {
        LiteralValue::Integer(number) => {
            let given = ScalarValue::Int64(Some(*number));
            if *data_type == DataType::Int64 {
                return Some(given);
            }
            let value = given.cast_to(data_type).ok()?;
            let is_same = value.cast_to(&DataType::Int64).is_ok_and(|back| back == given);
            is_same.then_some(value)
        }
        LiteralValue::Text(text) => Some(ScalarValue::Utf8(Some(text.clone()))),
    }
}

struct Opening<'a> {
    literals: &'a [Literal],
    /// Where the statement begins.
    begin: Position,
    /// How many parameters the statement has of its own.
    parameters: usize,
    may_open: &'a dyn Fn(usize) -> bool,
    is_open: Vec<bool>,
}

impl Opening<'_> {
    /// Opens literals that columns are compared with.
    fn conditions(&mut self, filter: &mut Option<Expr>) {
        let mut waiting: Vec<&mut Expr> = filter.iter_mut().collect();
        while let Some(condition) = waiting.pop() {
            match condition {
                Expr::Nested(inner) | Expr::UnaryOp { op: UnaryOperator::Not, expr: inner } => {
                    waiting.push(inner);
                }
                Expr::BinaryOp { left, op: BinaryOperator::And | BinaryOperator::Or, right } => {
                    waiting.extend([left.as_mut(), right.as_mut()]);
                }
                Expr::BinaryOp { left, op, right } if is_comparison(op) => {
                    match (is_column(left), is_column(right)) {
                        (true, false) => self.literal(right),
                        (false, true) => self.literal(left),
                        _ => {}
                    }
                }
                Expr::Between { expr, low, high, .. } if is_column(expr) => {
                    self.literal(low);
                    self.literal(high);
                }
                Expr::InList { expr, list, .. } if is_column(expr) => {
                    list.iter_mut().for_each(|value| self.literal(value));
                }
                _ => {}
            }
        }
    }

    /// Opens a literal that a column is set to, or that it and a column are added to.
    fn assigned(&mut self, value: &mut Expr) {
        let Expr::BinaryOp { left, op, right } = value else { return self.literal(value) };
        if !matches!(op, BinaryOperator::Plus | BinaryOperator::Minus | BinaryOperator::Multiply) {
            return;
        }
        let number = match (is_column(left), is_column(right)) {
            (true, false) => right,
            (false, true) => left,
            _ => return,
        };
        if let Some((LiteralValue::Integer(_), _)) = literal(number) {
            self.literal(number);
            if let Some(ValueWithSpan { value: Value::Placeholder(_), .. }) = value_of(number) {
                // Beside a column it would have the column's type.
                let parameter = std::mem::replace(number.as_mut(), Expr::value(Value::Null));
                **number = bigint(parameter);
            }
        }
    }

    /// Puts a parameter in the place of an expression that is a literal of the shape.
    fn literal(&mut self, expression: &mut Expr) {
        let Some((value, position)) = literal(expression) else { return };
        let Some(position) = relative(position, self.begin) else { return };
        // They are in ascending order.
        let found = self.literals.binary_search_by_key(&position, |literal| literal.position);
        let Ok(number) = found else { return };
        if self.literals[number].value != value || !(self.may_open)(number) {
            return;
        }
        self.is_open[number] = true;
        let name = format!("${}", self.parameters + 1 + number);
        if let Some(place) = value_of(expression) {
            let span = place.span;
            *expression = Expr::Value(ValueWithSpan { value: Value::Placeholder(name), span });
        }
    }
}

/// The literal that an expression is, and where it starts.
fn literal(expression: &Expr) -> Option<(LiteralValue, Position)> {
    let (sign, value) = match expression {
        Expr::Value(value) => ("", value),
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => match expr.as_ref() {
            Expr::Value(value @ ValueWithSpan { value: Value::Number(..), .. }) => ("-", value),
            _ => return None,
        },
        _ => return None,
    };
    let mut position = Position::of_span(value.span)?;
    position.column -= sign.len() as u64;
    match &value.value {
        Value::Number(digits, false) => {
            let number = format!("{sign}{digits}").parse().ok()?;
            Some((LiteralValue::Integer(number), position))
        }
        Value::SingleQuotedString(text) => Some((LiteralValue::Text(text.clone()), position)),
        _ => None,
    }
}

fn value_of(expression: &Expr) -> Option<&ValueWithSpan> {
    match expression {
        Expr::Value(value) => Some(value),
        Expr::UnaryOp { expr, .. } => value_of(expr),
        _ => None,
    }
}

/// A value as a BIGINT.
fn bigint(value: Expr) -> Expr {
    Expr::Cast {
        kind: CastKind::Cast,
        expr: Box::new(value),
        data_type: ast::DataType::BigInt(None),
        array: false,
        format: None,
    }
}

/// A position counted from the begin of a statement.
fn relative(position: Position, begin: Position) -> Option<Position> {
    let line = position.line.checked_sub(begin.line)? + 1;
    let column = match line {
        1 => position.column.checked_sub(begin.column)? + 1,
        _ => position.column,
    };
    Some(Position { line, column })
}

fn is_comparison(op: &BinaryOperator) -> bool {
    matches!(
        op,
        BinaryOperator::Eq
            | BinaryOperator::Lt
            | BinaryOperator::LtEq
            | BinaryOperator::Gt
            | BinaryOperator::GtEq
    )
}

fn is_column(expression: &ast::Expr) -> bool {
    matches!(expression, Expr::Identifier(_) | Expr::CompoundIdentifier(_))
}
