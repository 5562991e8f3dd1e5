//! Plans that are kept for statements that run again.
//!
//! A statement by key spends nearly all of its time on its plan. So when a text is planned for the second time, its plan is
//! kept: optimised, with its parameters open. From then on the values are put in, and the plan runs.
//!
//! A plan is kept only where that cannot matter to the result, nor to how rows are found:
//!
//! - It reads one relation, by its key, or none. A plan that scans costs little beside the scan.
//! - It calls only immutable functions, and none on parameters: a result's type may depend on an argument's value.
//! - In its filters, parameters are compared with columns as they are, so that a seek needs no constant to be folded.
//! - It was made with the relations that exist now: a definition ends all plans that were kept before it.

use std::sync::Arc;

use alluvium_sql::planner::{bind, typed};
use alluvium_sql::stack;
use alluvium_sql::statement::Statement;
use datafusion::common::Result as PlanResult;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{Expr, LogicalPlan, TableScan, Volatility};
use datafusion::scalar::ScalarValue;

use super::plans::Kept;
use super::reader::{Reader, Reading};
use super::seek;
use super::values::allow_nulls;
use crate::error::Result;

/// The longest text that is remembered, in bytes.
const LONGEST: usize = 4 << 10;

/// A plan that can run once its relations are [pinned](Reader).
pub(crate) struct Plan {
    pub(super) logical: LogicalPlan,
    /// Whether only its relations and operators are left to be chosen.
    pub(super) is_optimized: bool,
}

impl From<LogicalPlan> for Plan {
    fn from(logical: LogicalPlan) -> Self {
        Self { logical, is_optimized: false }
    }
}

/// A plan that is kept.
#[derive(Debug)]
pub(crate) struct Prepared {
    /// Optimised, with open parameters; it scans relations as the planner names them.
    plan: LogicalPlan,
    /// The table that the statement changes, if it changes one.
    target: Option<String>,
    /// Whether it reads a relation.
    reads: bool,
}

impl Prepared {
    /// The table that the statement changes.
    pub(crate) fn target(&self) -> Option<&str> {
        self.target.as_deref()
    }

    /// Whether the statement reads a relation.
    pub(crate) fn reads(&self) -> bool {
        self.reads
    }

    /// The plan for these values, which are of the types that it was prepared for.
    pub(crate) fn bind(&self, values: &[ScalarValue]) -> Result<Plan> {
        Ok(Plan { logical: bind(self.plan.clone(), values)?, is_optimized: true })
    }
}

impl Reader {
    /// The plan of a statement for these values. The plan as it is given has open parameters; it is kept if it runs again.
    pub(crate) fn plan(
        &self,
        statement: &Statement,
        plan: LogicalPlan,
        target: Option<&str>,
        values: &[ScalarValue],
        reading: Reading<'_>,
    ) -> Result<Plan> {
        // Plans are dropped by whoever comes by, on whatever stack.
        let is_small = statement.text.len() <= LONGEST
            && stack::is_shallow(
                self.catalog.with_functions(statement.depth) + self.catalog.deepest(),
            );
        if is_small && self.plans.is_wanted(statement, values, reading.entries) {
            // What is wrong with it is found again below, and reported with the values.
            let prepared =
                self.prepare(&plan, target, values, reading).ok().flatten().map(Arc::new);
            let kept = prepared.clone().map_or(Kept::Nothing, Kept::Plan);
            self.plans.keep(statement, values, reading.entries, kept);
            if let Some(prepared) = prepared {
                return prepared.bind(values);
            }
        }
        let plan = bind(plan, values)?;
        Ok(if target.is_some() { allow_nulls(plan)?.into() } else { plan.into() })
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
        target: Option<&str>,
        values: &[ScalarValue],
        reading: Reading<'_>,
    ) -> Result<Option<Prepared>> {
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
        let mut open = typed(plan.clone(), values)?;
        if target.is_some() {
            open = allow_nulls(open)?;
        }
        let Some(optimized) = self.query.optimize_simple(self.attach(open, reading)?)? else {
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
        let (plan, target, reads) = (detached.data, target.map(str::to_owned), source.is_some());
        Ok(finds.then_some(Prepared { plan, target, reads }))
    }
}

/// Whether a scan reads some keys only, whatever the values of parameters are.
fn finds_by_key(scan: &TableScan) -> bool {
    let schema = scan.source.schema();
    !scan.filters.is_empty() && scan.filters.iter().all(|filter| seek::is_seekable(filter, &schema))
}

/// Whether the functions that a plan calls are immutable, and none is called on parameters.
fn is_preparable(plan: &LogicalPlan) -> PlanResult<bool> {
    let mut is_preparable = true;
    plan.apply(|node| {
        node.apply_expressions(|expression| {
            expression.apply(|part| {
                is_preparable &= match part {
                    Expr::ScalarFunction(call) => {
                        call.func.signature().volatility == Volatility::Immutable
                            && !has_parameter(part)
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
    use alluvium_sql::statement;

    use crate::Engine;

    const TABLES: &str = "
        CREATE TABLE t (id INTEGER PRIMARY KEY, name VARCHAR, v BIGINT, at TIMESTAMP DEFAULT NOW());
        CREATE TABLE heap (id INTEGER, v BIGINT);
        CREATE VIEW doubled AS SELECT id AS k, v * 2 AS v2 FROM t WHERE name <> 'b'";

    /// Whether the plan of a statement is kept once it ran twice.
    fn is_kept(engine: &Engine, sql: &str) -> bool {
        let statement = statement::parse(sql).next().expect("a statement").expect("it is right");
        let values = vec![1_i64.into(); sql.matches('$').count()];
        let mut session = engine.session();
        for _ in 0..2 {
            session.run_with(&statement, &values).unwrap_or_else(|error| panic!("{sql}: {error}"));
        }
        let entries = engine.instance.definitions.catalog.entries();
        engine.instance.reader.plans.get(&statement, &values, &entries).is_some()
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
            "DELETE FROM t WHERE id = $1",
            "INSERT INTO t VALUES ($1, 'name', $2, NULL)",
            "INSERT INTO heap (v) VALUES ($1), (3)",
        ] {
            assert!(is_kept(&engine, sql), "{sql}");
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
            "INSERT INTO t (id) VALUES ($1)",
            "INSERT INTO heap SELECT id, v FROM t",
        ] {
            assert!(!is_kept(&engine, sql), "{sql}");
        }
    }
}
