//! INSERT … ON CONFLICT: the fate of rows whose keys are taken.

use std::collections::HashSet;
use std::ops::ControlFlow;

use alluvium_sql_syntax::error::{Error, Position, Result};
use alluvium_sql_syntax::statement::fold;
use arrow::array::{Array, RecordBatch};
use datafusion_common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion_common::{Column, ScalarValue};
use datafusion_expr::{Cast, Expr, LogicalPlan, LogicalPlanBuilder, Projection};
use sqlparser::ast::{
    self, BinaryOperator, ConflictTarget, DoUpdate, Ident, Join, JoinConstraint, JoinOperator,
    OnConflictAction, OnInsert, Query, SelectItem, VisitMut, VisitorMut,
};

use super::query::{column, from, named, select};
use super::target::Target;
use super::{assignments, statement_rows};
use crate::context::Scope;
use crate::relations::relation::source_of;
use crate::rules::equality::compares_by_bytes;
use crate::statements::parameters::bind;

/// The name by which SET has the row that was to be inserted.
const EXCLUDED: &str = "excluded";

/// How many keys of several columns are sought at most, for each row.
const MOST_PER_ROW: usize = 2;

/// The action of an INSERT for rows whose keys are taken.
#[derive(Clone, Debug)]
pub struct OnConflict {
    /// The keys that count: that which the statement names, or else all of the table.
    arbiters: Vec<Arbiter>,
    /// Whether rows whose keys are taken change the rows that have these.
    updates: bool,
}

/// A key of a table, the primary key or columns that are UNIQUE, and the rows that have those of a statement's rows.
#[derive(Clone, Debug)]
pub struct Arbiter {
    /// The rows of the table that have their keys, joined with them.
    plan: LogicalPlan,
    /// The columns of the key.
    key: Vec<usize>,
    /// The table.
    table: String,
}

impl OnConflict {
    /// Whether it is `DO UPDATE`, and not `DO NOTHING`. Then there is one arbiter.
    pub fn updates(&self) -> bool {
        self.updates
    }

    /// The keys that count.
    pub fn arbiters(&self) -> &[Arbiter] {
        &self.arbiters
    }

    /// The queries before their rows are known.
    pub(super) fn plans(&self) -> impl Iterator<Item = &LogicalPlan> {
        self.arbiters.iter().map(|arbiter| &arbiter.plan)
    }

    /// With values for its parameters.
    pub fn bind(self, values: &[ScalarValue]) -> Result<OnConflict> {
        let arbiters = self
            .arbiters
            .into_iter()
            .map(|arbiter| Ok(Arbiter { plan: bind(arbiter.plan, values)?, ..arbiter }));
        Ok(OnConflict { arbiters: arbiters.collect::<Result<_>>()?, ..self })
    }
}

impl Arbiter {
    /// The columns of the key. No row has that of another one, unless one of them is NULL.
    pub fn key(&self) -> &[usize] {
        &self.key
    }

    /// Of these rows, which have the columns of the table and keys that differ, the query of those whose keys are taken: the row
    /// that has the key; if the statement [updates](OnConflict::updates) also the row that takes its place, and whether it does.
    pub fn of(&self, rows: &RecordBatch) -> Result<LogicalPlan> {
        let plan = statement_rows::put(self.plan.clone(), rows);
        plan.and_then(|plan| self.with_keys(plan, rows))
            .map_err(|error| Error::from_datafusion(&error))
    }

    /// Restricts the scan of the table to keys that the rows may have, so that it seeks.
    fn with_keys(
        &self,
        plan: LogicalPlan,
        rows: &RecordBatch,
    ) -> datafusion_common::Result<LogicalPlan> {
        let mut keys: Vec<(usize, Vec<Expr>)> = Vec::new();
        let mut product = 1;
        for &key in &self.key {
            let values = rows.column(key);
            if !compares_by_bytes(values.data_type()) {
                break;
            }
            let values: HashSet<ScalarValue> = (0..values.len())
                .map(|row| ScalarValue::try_from_array(values, row))
                .collect::<datafusion_common::Result<_>>()?;
            product *= values.len();
            if !keys.is_empty() && product > MOST_PER_ROW * rows.num_rows() {
                break;
            }
            keys.push((key, values.into_iter().map(|value| Expr::Literal(value, None)).collect()));
        }
        plan.transform_up(|node| {
            let LogicalPlan::TableScan(scan) = &node else { return Ok(Transformed::no(node)) };
            if source_of(scan.source.as_ref()).is_none_or(|source| source.name() != self.table) {
                return Ok(Transformed::no(node));
            }
            let columns = node.schema().columns();
            let conditions: Vec<Expr> =
                keys.iter().map(|(key, values)| in_list(columns[*key].clone(), values)).collect();
            let Some(condition) = conditions.into_iter().reduce(Expr::and) else {
                return Ok(Transformed::no(node));
            };
            Ok(Transformed::yes(LogicalPlanBuilder::from(node).filter(condition)?.build()?))
        })
        .data()
    }
}

fn in_list(column: Column, values: &[Expr]) -> Expr {
    match values {
        [value] => Expr::Column(column).eq(value.clone()),
        values => Expr::Column(column).in_list(values.to_vec(), false),
    }
}

/// The plan of an ON CONFLICT; `None` without one.
pub(super) fn plan(
    on: &Option<OnInsert>,
    target: &Target,
    scope: Scope<'_>,
) -> Result<Option<OnConflict>> {
    let on = match on {
        None => return Ok(None),
        Some(OnInsert::OnConflict(on)) => on,
        Some(_) => return Err(Error::not_supported("INSERT … ON", target.position)),
    };
    let keys = keys(&on.conflict_target, target)?;
    let update = match &on.action {
        OnConflictAction::DoNothing => None,
        OnConflictAction::DoUpdate(update) => {
            if on.conflict_target.is_none() {
                let message = "ON CONFLICT DO UPDATE names the columns of a key: ON CONFLICT (key) DO UPDATE SET …";
                return Err(Error::new(message, target.position));
            }
            target.check_changes("ON CONFLICT DO UPDATE")?;
            Some(update)
        }
    };
    let arbiters = keys.into_iter().map(|key| {
        let plan = Conflicting { target, key, update }.plan(scope)?;
        Ok(Arbiter { plan, key: key.to_vec(), table: target.name.clone() })
    });
    let (arbiters, updates) = (arbiters.collect::<Result<_>>()?, update.is_some());
    Ok(Some(OnConflict { arbiters, updates }))
}

/// The keys that a statement names, or all. Only rows of keys that are unique can conflict.
fn keys<'a>(named: &Option<ConflictTarget>, target: &'a Target) -> Result<Vec<&'a [usize]>> {
    let name = &target.name;
    let own = (!target.key.is_empty()).then_some(&target.key).into_iter();
    let all: Vec<&[usize]> = own.chain(&target.uniques).map(Vec::as_slice).collect();
    if all.is_empty() {
        let message =
            format!("\"{name}\" has no PRIMARY KEY and no UNIQUE, so none of its rows conflict");
        return Err(Error::new(message, target.position));
    }
    let named = match named {
        None => return Ok(all),
        Some(ConflictTarget::OnConstraint(constraint)) => {
            let what = "ON CONFLICT ON CONSTRAINT (name the columns of the key)";
            return Err(Error::not_supported(what, Position::of(constraint)));
        }
        Some(ConflictTarget::Columns(named)) => named,
    };
    let columns = named.iter().map(|column| target.column_of(column));
    let columns = columns.collect::<Result<HashSet<usize>>>()?;
    let is_named = |key: &&&[usize]| {
        key.len() == columns.len() && key.iter().all(|column| columns.contains(column))
    };
    if let Some(key) = all.iter().find(is_named) {
        return Ok(vec![*key]);
    }
    let written = |key: &&[usize]| {
        let columns: Vec<&str> = key.iter().map(|&key| target.columns[key].as_str()).collect();
        format!("({})", columns.join(", "))
    };
    let written: Vec<String> = all.iter().map(written).collect();
    let message = format!(
        "ON CONFLICT names other columns than a PRIMARY KEY or UNIQUE of \"{name}\", which has {}",
        written.join(", ")
    );
    let at = named.first().and_then(|column| Position::of_span(column.span));
    Err(Error::new(message, at.or(Some(target.position))))
}

/// Rows of the table, joined with those of the statement that have their keys.
struct Conflicting<'a> {
    target: &'a Target,
    key: &'a [usize],
    update: Option<&'a DoUpdate>,
}

impl Conflicting<'_> {
    fn plan(&self, scope: Scope<'_>) -> Result<LogicalPlan> {
        let (target, key) = (self.target, self.key);
        let Target { name, own_name, columns, .. } = target;
        let old = columns.iter().enumerate();
        let old =
            old.map(|(number, of)| named(column(own_name, of), format!("old column {number}")));
        let mut items: Vec<SelectItem> = old.collect();
        if let Some(update) = self.update {
            items.extend(self.new_row(update)?);
        }
        let equal = key.iter().map(|&key| ast::Expr::BinaryOp {
            left: Box::new(column(EXCLUDED, &columns[key])),
            op: BinaryOperator::Eq,
            right: Box::new(column(own_name, &columns[key])),
        });
        let both = |left, right| ast::Expr::BinaryOp {
            left: Box::new(left),
            op: BinaryOperator::And,
            right: Box::new(right),
        };
        let on = equal.reduce(both).map_or(JoinConstraint::None, JoinConstraint::On);
        let mut rows = from(statement_rows::NAME, EXCLUDED);
        rows.joins.push(Join {
            relation: from(name, own_name).relation,
            global: false,
            join_operator: JoinOperator::Inner(on),
        });
        let plan = target.queried(select(items, vec![rows], None), scope)?;
        match self.update {
            None => Ok(plan),
            Some(_) => self.converted(plan),
        }
    }

    /// The columns of the row that takes the place of another, and whether it does.
    fn new_row(&self, update: &DoUpdate) -> Result<Vec<SelectItem>> {
        let Target { own_name, columns, .. } = self.target;
        let mut update = update.clone();
        let mut qualify = Qualify { target: self.target, parameters: Vec::new() };
        // The column that is assigned to is no expression.
        for assignment in &mut update.assignments {
            if let ControlFlow::Break(error) = assignment.value.visit(&mut qualify) {
                return Err(error);
            }
        }
        if let ControlFlow::Break(error) = update.selection.visit(&mut qualify) {
            return Err(error);
        }
        let mut values = assignments::read(&update.assignments, self.target)?;
        let mut items = Vec::with_capacity(columns.len() + 1);
        for (number, of) in columns.iter().enumerate() {
            let value = match (values.remove(&number), &update.selection) {
                (None, _) => column(own_name, of),
                (Some(value), None) => value,
                // It is not evaluated for other rows.
                (Some(value), Some(condition)) => only_if(condition, value),
            };
            items.push(named(value, format!("new column {number}")));
        }
        let changes = match update.selection {
            None => ast::Expr::value(ast::Value::Boolean(true)),
            Some(condition) => ast::Expr::IsTrue(Box::new(condition)),
        };
        items.push(named(changes, "changes"));
        Ok(items)
    }

    /// The new rows with the types of the table's columns.
    fn converted(&self, plan: LogicalPlan) -> Result<LogicalPlan> {
        let LogicalPlan::Projection(Projection { expr, input, .. }) = plan else {
            return Err(Error::new("the statement has no rows", self.target.position));
        };
        let fields = self.target.schema.fields();
        let new = fields.len()..2 * fields.len();
        let converted = expr.into_iter().enumerate().map(|(place, expression)| {
            if !new.contains(&place) {
                return expression;
            }
            let data_type = fields[place - new.start].data_type().clone();
            let cast = Expr::Cast(Cast::new(Box::new(expression.unalias()), data_type));
            cast.alias(format!("new column {}", place - new.start))
        });
        let converted: Vec<Expr> = converted.collect();
        LogicalPlanBuilder::from(input)
            .project(converted)
            .and_then(LogicalPlanBuilder::build)
            .map_err(|error| Error::from_datafusion(&error))
    }
}

/// `CASE WHEN condition THEN value END`
fn only_if(condition: &ast::Expr, value: ast::Expr) -> ast::Expr {
    let empty = ast::helpers::attached_token::AttachedToken::empty;
    let when = ast::CaseWhen { condition: condition.clone(), result: value };
    ast::Expr::Case {
        case_token: empty(),
        end_token: empty(),
        operand: None,
        conditions: vec![when],
        else_result: None,
    }
}

/// Makes columns without a qualifier those of the table, and not of `excluded`.
struct Qualify<'a> {
    target: &'a Target,
    /// The parameters of the enclosing lambdas.
    parameters: Vec<String>,
}

impl VisitorMut for Qualify<'_> {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        let what = "a subquery in ON CONFLICT … DO UPDATE";
        ControlFlow::Break(Error::not_supported(what, Position::of(query)))
    }

    fn pre_visit_expr(&mut self, expression: &mut ast::Expr) -> ControlFlow<Error> {
        match expression {
            ast::Expr::Lambda(lambda) => {
                self.parameters.extend(lambda.params.iter().map(|of| fold(&of.name)));
            }
            ast::Expr::Identifier(name)
                if !self.parameters.contains(&fold(name))
                    && self.target.columns.contains(&fold(name)) =>
            {
                let relation = Ident::with_quote('"', self.target.own_name.clone());
                *expression = ast::Expr::CompoundIdentifier(vec![relation, name.clone()]);
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expression: &mut ast::Expr) -> ControlFlow<Error> {
        if let ast::Expr::Lambda(lambda) = expression {
            self.parameters.truncate(self.parameters.len() - lambda.params.len());
        }
        ControlFlow::Continue(())
    }
}
