//! ASOF joins in plans that DataFusion runs.
//!
//! The rows of both sides are put into one order: by key and time, and at one time in the order in which a left row matches
//! the rows before it. Each right row begins a group, which has the left rows after it: those match it. So each row
//! is sorted twice, however many pairs there are.

use alluvium_sql_functions::FUNCTIONS;
use datafusion_common::tree_node::{Transformed, TransformedResult};
use datafusion_common::{Result, ScalarValue, internal_err};
use datafusion_expr::expr::{Sort, WindowFunction};
use datafusion_expr::type_coercion::binary::BinaryTypeCoercer;
use datafusion_expr::{
    Expr, ExprFunctionExt, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Operator, WindowFrame,
    WindowFrameBound, WindowFrameUnits, WindowFunctionDefinition, ident, lit,
};

use super::{AsofNode, Compared, as_asof_join};

/// The column that is 1 in right rows and NULL in left ones.
const RIGHT: &str = "right";
const TIME: &str = "time";
const GROUP: &str = "group";

/// The plan with every ASOF join expanded to nodes that DataFusion runs.
pub fn expand(plan: LogicalPlan) -> Result<LogicalPlan> {
    plan.transform_up_with_subqueries(|node| match &node {
        LogicalPlan::Extension(extension) => match as_asof_join(extension) {
            Some(join) => written_out(join).map(Transformed::yes),
            None => Ok(Transformed::no(node)),
        },
        _ => Ok(Transformed::no(node)),
    })
    .data()
}

fn written_out(node: &AsofNode) -> Result<LogicalPlan> {
    let Compared { keys, times, nearest } = node.compared()?;
    let (left_keys, right_keys): (Vec<Expr>, Vec<Expr>) = keys.into_iter().unzip();
    let compared = (
        left_keys.into_iter().chain([times.0]).collect::<Vec<_>>(),
        right_keys.into_iter().chain([times.1]).collect::<Vec<_>>(),
    );
    let (of_left, of_right) = coerced(node, compared)?;
    let keys: Vec<String> = (1..of_left.len()).map(|number| format!("key{number}")).collect();
    let present = of_right.iter().map(|column| column.clone().is_not_null());
    let right = LogicalPlanBuilder::from(node.right.clone());
    let right = match present.reduce(Expr::and) {
        Some(present) => right.filter(present)?,
        None => right,
    };
    let both = LogicalPlanBuilder::from(node.left.clone())
        .project(columns(node, true, of_left, &keys)?)?
        .union(right.project(columns(node, false, of_right, &keys)?)?.build()?)?;

    let by: Vec<Expr> = keys.iter().map(ident).collect();
    let ascending = |column: Expr| column.sort(true, true);
    let time = ident(TIME).sort(!nearest.later, true);
    // At one time right rows come first if left rows match them.
    let side = ident(RIGHT).sort(true, !nearest.or_equal);
    let ties = node.ties().into_iter().map(|column| ascending(ident(named("r", column))));
    let order: Vec<Sort> = [time, side].into_iter().chain(ties).collect();
    let group = over(function("count")?, ident(RIGHT), &by, order)?.alias(GROUP);
    let grouped = both.window([group])?;
    let within: Vec<Expr> = by.into_iter().chain([ident(GROUP)]).collect();
    let width = node.right.schema().fields().len();
    let matched = (0..width).map(|column| {
        let order = vec![ident(RIGHT).sort(true, false)];
        let first = over(function("first_value")?, ident(named("r", column)), &within, order)?;
        Ok(first.alias(named("match", column)))
    });
    let matched = matched.collect::<Result<Vec<_>>>()?;
    let matched = if matched.is_empty() { grouped } else { grouped.window(matched)? };
    let is_left = ident(RIGHT).is_null();
    let wanted = match node.keeps_left {
        true => is_left,
        false => is_left.and(ident(GROUP).gt(lit(0_i64))),
    };
    let of_left = (0..node.left.schema().fields().len()).map(|column| named("l", column));
    let found = of_left.chain((0..width).map(|column| named("match", column)));
    let project: Vec<Expr> = found
        .zip(node.schema.iter())
        .map(|(column, (qualifier, field))| {
            ident(column).alias_qualified(qualifier.cloned(), field.name())
        })
        .collect();
    matched.filter(wanted)?.project(project)?.build()
}

/// A column of a side.
fn named(side: &str, column: usize) -> String {
    format!("{side}{column}")
}

/// The columns of the rows of one side: those of both sides, where the other's are NULL, then what is compared.
fn columns(
    node: &AsofNode,
    is_left: bool,
    compared: Vec<Expr>,
    keys: &[String],
) -> Result<Vec<Expr>> {
    let mut columns = Vec::new();
    for (name, plan, is_here) in [("l", &node.left, is_left), ("r", &node.right, !is_left)] {
        for (number, (column, field)) in
            plan.schema().columns().into_iter().zip(plan.schema().fields()).enumerate()
        {
            let value = match is_here {
                true => Expr::Column(column),
                false => Expr::Literal(ScalarValue::try_from(field.data_type())?, None),
            };
            columns.push(value.alias(named(name, number)));
        }
    }
    let names = keys.iter().map(String::as_str).chain([TIME]);
    columns.extend(compared.into_iter().zip(names).map(|(value, name)| value.alias(name)));
    let right = if is_left { None } else { Some(1) };
    columns.push(Expr::Literal(ScalarValue::Int8(right), None).alias(RIGHT));
    Ok(columns)
}

/// The operands of the comparisons, cast to the types in which they are compared.
fn coerced(
    node: &AsofNode,
    (left, right): (Vec<Expr>, Vec<Expr>),
) -> Result<(Vec<Expr>, Vec<Expr>)> {
    let schemas = (node.left.schema(), node.right.schema());
    let pairs = left.into_iter().zip(right).map(|(left, right)| {
        let (one, other) = (left.get_type(schemas.0)?, right.get_type(schemas.1)?);
        let coercer = BinaryTypeCoercer::new(&one, &Operator::Eq, &other);
        let (one, other) = coercer.get_input_types()?;
        Ok((left.cast_to(&one, schemas.0)?, right.cast_to(&other, schemas.1)?))
    });
    Ok(pairs.collect::<Result<Vec<_>>>()?.into_iter().unzip())
}

fn function(name: &str) -> Result<WindowFunctionDefinition> {
    let window = FUNCTIONS.window.get(name).cloned().map(WindowFunctionDefinition::WindowUDF);
    let aggregate = || {
        let function = FUNCTIONS.aggregate.get(name).cloned();
        function.map(WindowFunctionDefinition::AggregateUDF)
    };
    match window.or_else(aggregate) {
        Some(function) => Ok(function),
        None => internal_err!("there is no {name}"),
    }
}

/// A function of a column over the rows up to each one.
fn over(
    function: WindowFunctionDefinition,
    column: Expr,
    by: &[Expr],
    order: Vec<Sort>,
) -> Result<Expr> {
    let frame = WindowFrame::new_bounds(
        WindowFrameUnits::Rows,
        WindowFrameBound::Preceding(ScalarValue::UInt64(None)),
        WindowFrameBound::CurrentRow,
    );
    Expr::from(WindowFunction::new(function, vec![column]))
        .partition_by(by.to_vec())
        .order_by(order)
        .window_frame(frame)
        .build()
}
