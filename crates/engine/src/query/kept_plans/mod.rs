//! Plans that are kept for statements that run again.
//!
//! A statement by key spends nearly all of its time on its plan. So when a text is planned for the second time, or a statement
//! that was prepared for the first time, its plan is kept: optimised, with its parameters open. From then on the values are
//! put in, and the plan runs, [step by step](Steps); or, if it is a [read by key](KeyRead) outside of BEGIN and COMMIT, the row is looked up.
//!
//! A plan is kept only where that cannot matter to the result, nor to how rows are found:
//!
//! - It reads one relation, by its key, or none. A plan that scans costs little beside the scan.
//! - It calls only functions that are immutable, or take values of sequences, and none on parameters: a result's type may depend on an
//!   argument's value. The time is put in at each run; it may be a value, but not part of one or of a filter.
//! - In its filters, parameters are compared with columns as they are, so that a seek needs no constant to be folded.
//! - It was made with the relations that exist now: a definition ends all plans that were kept before it.
//!
//! A text is known by its [shape](Shape): where only the value of a literal matters, it is a parameter of the plan. So a plan is
//! found for texts with other keys, before they are parsed.

mod key;
mod key_read;
mod plans;
mod steps;

use std::sync::Arc;

use alluvium_sql::functions::sequence::is_sequence;
use alluvium_sql::planner::parameter_types;
use alluvium_sql::planner::parametrized;
use alluvium_sql::planner::{Parametrized, bind, is_now, literal_value, may_become, typed};
use alluvium_sql::stack;
use alluvium_sql::statement::{self, Shape, Statement, StatementKind};
use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result as PlanResult};
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{Expr, LogicalPlan, TableScan, Volatility};
use datafusion::scalar::ScalarValue;

use self::key_read::KeyRead;
use self::plans::{Kept, Seen};
pub(crate) use self::plans::{OwnPlan, Plans};
use self::steps::Steps;
use super::reader::{Reader, Reading, relations};
use super::rows::Rows;
use super::running::Running;
use super::seek;
use super::table::RelationTable;
use super::values::allow_nulls;
use crate::catalog::{Entries, Scope};
use crate::error::Result;
use crate::fault::{Fault, armed};

/// The longest text that is remembered, in bytes.
const LONGEST: usize = 4 << 10;

/// A plan that can run once its relations are [pinned](Reader).
#[derive(Clone)]
pub(crate) struct Plan {
    pub(super) logical: LogicalPlan,
    /// Whether only its relations and operators are left to be chosen.
    pub(super) is_optimized: bool,
}

impl Plan {
    /// The plan, whose relations are not pinned.
    pub(crate) fn logical(&self) -> &LogicalPlan {
        &self.logical
    }
}

impl From<LogicalPlan> for Plan {
    fn from(logical: LogicalPlan) -> Self {
        Self { logical, is_optimized: false }
    }
}

/// A statement that is executed, with values for its parameters.
#[derive(Clone, Copy)]
pub(crate) struct Execution<'a> {
    pub(crate) statement: &'a Statement,
    pub(crate) values: &'a [ScalarValue],
    /// Where its plan is kept; with those of other texts without.
    pub(crate) own: Option<&'a OwnPlan>,
}

/// How a statement changes a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Insert,
    /// INSERT OR REPLACE.
    Replace,
    Update,
    Delete,
}

impl Change {
    fn of(statement: &StatementKind) -> Option<Self> {
        match statement {
            StatementKind::Insert(insert) if statement::replaces(insert) => Some(Self::Replace),
            StatementKind::Insert(_) => Some(Self::Insert),
            StatementKind::Update(_) => Some(Self::Update),
            StatementKind::Delete(_) => Some(Self::Delete),
            _ => None,
        }
    }
}

/// The shape by which the plan of a statement's text is kept; `None` if it is too long for that.
pub(crate) fn shape_of(text: &str) -> Option<Shape> {
    (text.len() <= LONGEST).then(|| Shape::of(text).unwrap_or_else(|| Shape::whole(text)))
}

/// The shape of a text that may be more than one statement; `None` if it takes the parser to find it, or is too long.
pub(crate) fn shape_before_parsing(text: &str) -> Option<Shape> {
    (text.len() <= LONGEST).then(|| Shape::of(text)).flatten()
}

/// A plan that is kept.
#[derive(Debug)]
pub(crate) struct KeptPlan {
    /// Optimised, with open parameters; it scans relations as the planner names them.
    plan: LogicalPlan,
    /// The table that the statement changes, if it changes one, and how.
    target: Option<(String, Change)>,
    /// For each literal of its shape the type of the parameter that it has become, if it has.
    literals: Vec<Option<DataType>>,
    /// Whether it reads a relation.
    reads: bool,
    /// Its form as a read by key, if it finds a row by its key.
    by_key: Option<KeyRead>,
    /// Its steps, if it needs no query engine.
    steps: Option<Arc<Steps>>,
}

impl KeptPlan {
    /// The table that the statement changes, and how.
    pub(crate) fn target(&self) -> Option<(&str, Change)> {
        self.target.as_ref().map(|(table, change)| (table.as_str(), *change))
    }

    /// The values for its parameters: those that are given, and the literals of a statement. `None` if one of these does not fit.
    pub(super) fn values(&self, given: &[ScalarValue], shape: &Shape) -> Option<Vec<ScalarValue>> {
        let mut values = Vec::with_capacity(given.len() + self.literals.len());
        values.extend_from_slice(given);
        for (data_type, literal) in self.literals.iter().zip(shape.literals()) {
            let first = shape.literals().first().filter(|_| armed(Fault::FirstLiteral));
            let literal = first.unwrap_or(literal);
            values.push(match data_type {
                Some(data_type) => literal_value(&literal.value, data_type)?,
                None => ScalarValue::Null,
            });
        }
        Some(values)
    }

    /// Whether the statement finds a row by its key.
    pub(crate) fn is_by_key(&self) -> bool {
        self.by_key.is_some()
    }

    /// Whether the statement changes or reads the row with one key, or has its rows in its text.
    pub(crate) fn is_of_one_key(&self) -> bool {
        self.by_key.is_some() || self.steps.as_ref().is_some_and(|steps| steps.is_of_one_key())
    }

    /// The columns of the key, with one row, of the row that the statement changes, if it is known before that is read.
    pub(crate) fn key(&self, values: &[ScalarValue]) -> Result<Option<Vec<ArrayRef>>> {
        self.steps.as_ref().map_or(Ok(None), |steps| steps.key(values))
    }

    /// The command of the statement.
    pub(crate) fn command(&self) -> &'static str {
        match &self.target {
            None => "SELECT",
            Some((_, Change::Insert | Change::Replace)) => "INSERT",
            Some((_, Change::Update)) => "UPDATE",
            Some((_, Change::Delete)) => "DELETE",
        }
    }

    /// Whether the statement reads a relation.
    pub(crate) fn reads(&self) -> bool {
        self.reads
    }

    /// The plan for these values, which are of the types that it was prepared for.
    fn bind(&self, values: &[ScalarValue]) -> Result<Plan> {
        Ok(Plan { logical: bind(self.plan.clone(), values)?, is_optimized: true })
    }
}

impl Reader {
    /// The row of a query whose kept plan finds it by its key; `None` if its plan has to run.
    pub(crate) fn look_up(
        &self,
        plan: &KeptPlan,
        values: &[ScalarValue],
        reading: Reading<'_>,
    ) -> Result<Option<Rows>> {
        match (&plan.by_key, reading.transaction) {
            (Some(by_key), None) => by_key.read(self, values, reading.at_least).map(Some),
            _ => Ok(None),
        }
    }

    /// Begins to run a kept plan for these values, which are of the types that it was prepared for.
    pub(crate) fn start_kept(
        &self,
        plan: &KeptPlan,
        values: &[ScalarValue],
        reading: Reading<'_>,
    ) -> Result<Running> {
        match &plan.steps {
            Some(steps) => {
                let relations = steps.relations();
                let (providers, time) = self.providers(relations, reading)?;
                let provider = relations.first().and_then(|name| providers.get(name));
                let table = provider.and_then(|provider| provider.downcast_ref::<RelationTable>());
                Ok(self.query.start_rows(steps.schema().clone(), steps.run(table, time, values)?))
            }
            None => self.start(plan.bind(values)?, reading),
        }
    }

    /// The plan of a statement for its values. The plan as it is given has open parameters; it is kept if it runs again.
    pub(crate) fn plan(
        &self,
        execution: Execution<'_>,
        plan: LogicalPlan,
        target: Option<&str>,
        reading: Reading<'_>,
    ) -> Result<Plan> {
        let Execution { statement, values, .. } = execution;
        // Plans may be dropped by any thread, on any stack.
        let depth = self.catalog.with_functions(statement.depth) + self.catalog.deepest();
        if stack::is_shallow(depth)
            && let Some((kept, values)) = self.keep(execution, &plan, target, reading)
        {
            return kept.bind(&values);
        }
        let plan = bind(plan, values)?;
        Ok(if target.is_some() { allow_nulls(plan)?.into() } else { plan.into() })
    }

    /// Keeps the plan of a statement if it runs again and may be kept. Returns it, with the values that it takes.
    fn keep(
        &self,
        execution: Execution<'_>,
        plan: &LogicalPlan,
        target: Option<&str>,
        reading: Reading<'_>,
    ) -> Option<(Arc<KeptPlan>, Vec<ScalarValue>)> {
        let Execution { statement, values, own } = execution;
        let types: Vec<DataType> = values.iter().map(ScalarValue::data_type).collect();
        // Errors in it are found again when it is planned as it is, and reported with the values.
        let prepare = |plan: &LogicalPlan, types: &[DataType], literals| {
            let kind = Change::of(&statement.kind);
            let target = target.zip(kind).map(|(table, kind)| (table.to_owned(), kind));
            self.prepare(plan, target, types, literals, reading).ok().flatten().map(Arc::new)
        };
        if let Some(own) = own {
            if !own.is_wanted(values, reading.entries) {
                return None;
            }
            let prepared = prepare(plan, &types, Vec::new());
            let kept = prepared.clone().map_or(Kept::Nothing, Kept::Plan);
            own.keep(values, reading.entries, kept);
            return Some((prepared?, values.to_vec()));
        }
        // Others do not see what a transaction has defined, nor temporary tables.
        let has_defined = reading.transaction.is_some_and(|open| open.definitions().is_some());
        if has_defined || reading.entries.are_of_session() {
            return None;
        }
        let shape = shape_of(&statement.text)?;
        let keep = |is_open: &[bool], kept| {
            self.plans.keep(&shape, is_open, values, reading.entries, kept);
        };
        let mut is_open = match self.plans.seen(&shape, values, reading.entries) {
            Seen::Often => return None,
            Seen::Never => {
                let open = parametrized(statement, &shape, values.len(), &|_| true).is_open;
                keep(&open, Kept::Text);
                return None;
            }
            Seen::Once(is_open) => is_open.to_vec(),
        };
        while is_open.contains(&true) {
            let open = parametrized(statement, &shape, values.len(), &|number| is_open[number]);
            let Some((plan, literals)) = self.opened(&open, &shape, values.len(), reading) else {
                break;
            };
            let stays = |number: usize| is_open[number] && literals[number].is_none();
            if !(0..is_open.len()).any(stays) {
                let own = types.iter().cloned();
                let all = own.chain(literals.iter().map(|of| of.clone().unwrap_or(DataType::Null)));
                if let Some(prepared) = prepare(&plan, &all.collect::<Vec<_>>(), literals) {
                    keep(&is_open, Kept::Plan(prepared.clone()));
                    let values = prepared.values(values, &shape)?;
                    return Some((prepared, values));
                }
                break;
            }
            is_open = literals.iter().map(Option::is_some).collect();
        }
        is_open.fill(false);
        let literals = vec![None; is_open.len()];
        let mut all = types;
        all.resize(values.len() + literals.len(), DataType::Null);
        let prepared = prepare(plan, &all, literals);
        keep(&is_open, prepared.clone().map_or(Kept::Nothing, Kept::Plan));
        let prepared = prepared?;
        let values = prepared.values(values, &shape)?;
        Some((prepared, values))
    }

    /// The plan of a statement with parameters in the places of literals, and the types of these where the literals may have them.
    fn opened(
        &self,
        open: &Parametrized,
        shape: &Shape,
        parameters: usize,
        reading: Reading<'_>,
    ) -> Option<(LogicalPlan, Vec<Option<DataType>>)> {
        let scope = Scope(reading.entries);
        let plan = match &open.kind {
            StatementKind::Query(query) => self.planner.query(query, &scope).ok()?,
            StatementKind::Insert(insert) => self.planner.insert(insert, &scope).ok()?.plan,
            StatementKind::Update(update) => self.planner.update(update, &scope).ok()?.plan,
            StatementKind::Delete(delete) => self.planner.delete(delete, &scope).ok()?.plan,
            _ => return None,
        };
        let literals = shape.literals();
        let mut types = parameter_types(&plan, parameters + literals.len()).ok()?;
        let types = types.split_off(parameters).into_iter().zip(literals);
        let types = types.map(|(known, literal)| {
            known.filter(|data_type| may_become(&literal.value, data_type))
        });
        Some((plan, types.collect()))
    }

    /// As [`Reader::plan`], of a statement that changes a table and has more plans, which are not kept.
    pub(crate) fn plan_once(&self, plan: LogicalPlan, values: &[ScalarValue]) -> Result<Plan> {
        Ok(allow_nulls(bind(plan, values)?)?.into())
    }

    /// Why a statement of this plan cannot run with these values, if that is known before it does.
    pub(crate) fn failure(
        &self,
        plan: LogicalPlan,
        values: &[ScalarValue],
        reading: Reading<'_>,
    ) -> Option<String> {
        let plan = self.plan_once(plan, values);
        let columns = plan.and_then(|plan| self.columns(plan.logical, reading));
        columns.err().map(|error| error.to_string())
    }

    /// The optimised plan, with open parameters for values of these types; `None` if it should not be kept.
    fn prepare(
        &self,
        plan: &LogicalPlan,
        target: Option<(String, Change)>,
        types: &[DataType],
        literals: Vec<Option<DataType>>,
        reading: Reading<'_>,
    ) -> Result<Option<KeptPlan>> {
        if !is_preparable(plan)? {
            return Ok(None);
        }
        let mut source = None;
        plan.apply(|node| {
            if let LogicalPlan::TableScan(scan) = node {
                source = Some(scan.source.clone());
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
        let mut open = typed(plan.clone(), types)?;
        if target.is_some() {
            open = allow_nulls(open)?;
        }
        let Some(optimized) = self.query.optimize_simple(self.attach_kept(open, reading)?)? else {
            return Ok(None);
        };
        let mut finds = true;
        let detached = optimized.transform_up(|node| match (node, &source) {
            (LogicalPlan::TableScan(scan), Some(source)) => {
                finds &= finds_by_key(&scan);
                let source = source.clone();
                Ok(Transformed::yes(LogicalPlan::TableScan(TableScan { source, ..scan })))
            }
            (LogicalPlan::Filter(filter), _) => {
                let schema = filter.input.schema().inner();
                let mut parts = split_conjunction(&filter.predicate).into_iter();
                finds &= parts.all(|part| !has_parameter(part) || seek::is_seekable(part, schema));
                Ok(Transformed::no(LogicalPlan::Filter(filter)))
            }
            (node, _) => Ok(Transformed::no(node)),
        })?;
        if !finds {
            return Ok(None);
        }
        let by_key = match &target {
            None => self.key_read(&detached.data, reading.entries)?,
            Some(_) => None,
        };
        let (plan, reads) = (detached.data, source.is_some());
        let compile =
            |expression: &Expr, columns: &DFSchema| self.query.expression(expression, columns);
        let steps = Steps::of(&plan, reading.entries, &compile)?.map(Arc::new);
        Ok(Some(KeptPlan { plan, target, literals, reads, by_key, steps }))
    }

    /// The read by key that a plan is.
    fn key_read(&self, plan: &LogicalPlan, entries: &Entries) -> Result<Option<KeyRead>> {
        let names = relations(plan)?;
        let entry = names.first().and_then(|name| entries.get(name));
        Ok(entry.and_then(|entry| KeyRead::of(self, plan, entry)))
    }
}

/// Whether a scan reads some keys only, whatever the values of parameters are.
fn finds_by_key(scan: &TableScan) -> bool {
    let schema = scan.source.schema();
    !scan.filters.is_empty() && scan.filters.iter().all(|filter| seek::is_seekable(filter, &schema))
}

/// Whether the functions that a plan calls are immutable, [of sequences](is_sequence) or [the time](is_now), which are bound on each run, and none
/// is called on parameters or the time.
fn is_preparable(plan: &LogicalPlan) -> PlanResult<bool> {
    let mut is_preparable = true;
    plan.apply(|node| {
        let has_values = matches!(node, LogicalPlan::Projection(_) | LogicalPlan::Values(_));
        node.apply_expressions(|expression| {
            expression.apply(|part| {
                is_preparable &= match part {
                    Expr::ScalarFunction(_) if is_now(part) => has_values,
                    Expr::ScalarFunction(call) => {
                        let is_immutable =
                            call.func.signature().volatility == Volatility::Immutable;
                        (is_immutable || is_sequence(part))
                            && !has_parameter(part)
                            && !part.exists(|part| Ok(is_now(part)))?
                    }
                    Expr::HigherOrderFunction(_) => false,
                    _ => true,
                };
                Ok(if is_preparable {
                    TreeNodeRecursion::Continue
                } else {
                    TreeNodeRecursion::Stop
                })
            })
        })
    })?;
    Ok(is_preparable)
}

fn has_parameter(expression: &Expr) -> bool {
    let is_parameter = |part: &Expr| Ok(matches!(part, Expr::Placeholder(_)));
    // Looking at it cannot fail.
    expression.exists(is_parameter).unwrap_or(true)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{KeptPlan, shape_of};
    use crate::{Engine, Value};

    const TABLES: &str = "
        CREATE TABLE t (id INTEGER PRIMARY KEY, name VARCHAR, v BIGINT, at TIMESTAMP DEFAULT NOW());
        CREATE TABLE heap (id INTEGER, v BIGINT); CREATE TABLE made (id SERIAL PRIMARY KEY, v BIGINT);
        CREATE VIEW doubled AS SELECT id AS k, v * 2 AS v2 FROM t WHERE name <> 'b'";

    /// The plan that is kept of a statement once it ran twice.
    fn kept(engine: &Engine, sql: &str) -> Option<Arc<KeptPlan>> {
        let statement = crate::parse(sql).next().expect("a statement").expect("it is right");
        let values: Vec<Value> = vec![1_i64.into(); sql.matches('$').count()];
        let mut session = engine.session();
        for _ in 0..2 {
            session.execute("BEGIN").expect("a transaction begins");
            session.run_with(&statement, &values).unwrap_or_else(|error| panic!("{sql}: {error}"));
            session.execute("ROLLBACK").expect("a transaction ends");
        }
        let entries = engine.instance.definitions.catalog.entries();
        let shape = shape_of(sql).expect("it is short");
        let plans = &engine.instance.reader.plans;
        plans.get(&shape, Value::scalars(&values), &entries).map(|(plan, _)| plan)
    }

    #[test]
    fn plans_are_kept_of_statements_by_key_and_of_constant_rows() {
        let engine = Engine::builder().workers(1).open_in_memory().expect("an engine starts");
        engine.execute(TABLES).expect("the statements are right");
        for sql in [
            "SELECT * FROM t WHERE id = $1",
            "SELECT name, v + $1 FROM t WHERE id IN ($2, $3) AND v > 2 * 3",
            "SELECT abs(v) FROM t WHERE id BETWEEN $1 AND $2 AND v = $3",
            "SELECT v2 FROM doubled WHERE k = $1",
            "SELECT v FROM t WHERE id = 7",
            "UPDATE t SET v = v + $1, name = NULL WHERE id = $2",
            "UPDATE t SET v = v + -17 WHERE id = 3",
            "UPDATE t SET v = 2 * v, id = id - 1 WHERE id = 3",
            "DELETE FROM t WHERE id = $1",
            "INSERT INTO t VALUES ($1, 'name', $2, NULL)",
            "INSERT INTO heap (v) VALUES ($1), (3)",
            "INSERT INTO made (v) VALUES ($1)",
            "INSERT INTO t (id) VALUES ($1)",
            "INSERT INTO t (id, at) VALUES ($1, NOW()), (2, CURRENT_DATE)",
            "UPDATE t SET at = NOW() WHERE id = $1",
            "SELECT NOW(), v FROM t WHERE id = $1",
        ] {
            let plan = kept(&engine, sql).unwrap_or_else(|| panic!("not kept: {sql}"));
            // Values of sequences are taken by the query engine.
            assert_eq!(plan.steps.is_some(), !sql.contains("made"), "{sql}");
        }
        for sql in [
            "SELECT * FROM t",
            "SELECT * FROM t WHERE v = $1",
            "SELECT * FROM heap WHERE id = $1",
            // The constants have to be folded before the key is compared with one.
            "SELECT v FROM t WHERE id = $1 + 1",
            "SELECT v FROM t WHERE id = $1 AND v = $2 + 3",
            "SELECT v FROM t WHERE id = $1 AND at < NOW()",
            "SELECT random() FROM t WHERE id = $1",
            "SELECT round(v, $1) FROM t WHERE id = $2",
            "SELECT v FROM t WHERE id = $1 AND v IN (SELECT v FROM heap)",
            "SELECT v FROM t WHERE id = $1 ORDER BY v",
            "SELECT count(*) FROM t WHERE id = $1",
            "UPDATE t SET at = date_trunc('day', NOW()) WHERE id = $1",
            "INSERT INTO heap SELECT id, v FROM t",
        ] {
            assert!(kept(&engine, sql).is_none(), "{sql}");
        }
    }
}
