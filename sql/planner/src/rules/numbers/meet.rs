//! DECIMAL beside DOUBLE is DOUBLE, and quotients of DECIMAL have enough digits.

use std::sync::Arc;

use arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType};
use datafusion_common::tree_node::{Transformed, TransformedResult};
use datafusion_common::{DFSchema, DFSchemaRef, Result};
use datafusion_expr::expr::{Between, Case, Cast, InList, InSubquery, ScalarFunction};
use datafusion_expr::type_coercion::binary::BinaryTypeCoercer;
use datafusion_expr::{
    BinaryExpr, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Operator, Union, Values,
};

use crate::registered::is_registered;

use super::double::{as_double, is_floating, to_double};
use super::functions::WHOLE_QUOTIENT;
use super::{Change, Types, change_node};

/// The digits that a quotient of DECIMAL has after its point, if its type has room for them; Postgres has as many.
const QUOTIENT_SCALE: i16 = 16;

/// Casts DECIMAL to DOUBLE wherever one type must hold both: in comparisons and arithmetic, CASE, IN, arguments of one
/// function, UNION and keys of joins; among the rows of VALUES if these do not go `into_table`, which has its own types.
pub fn meet(plan: LogicalPlan, into_table: bool) -> Result<LogicalPlan> {
    plan.transform_up_with_subqueries(|node| {
        let node = match node {
            LogicalPlan::Union(union) => unite(union)?,
            LogicalPlan::Values(values) if !into_table => {
                return unite_rows(values).map(Transformed::yes);
            }
            LogicalPlan::Join(mut join) => {
                let (left, right) = (join.left.schema(), join.right.schema());
                for (here, there) in &mut join.on {
                    let mut types = vec![here.get_type(left).ok(), there.get_type(right).ok()];
                    let mut sides = vec![std::mem::take(here), std::mem::take(there)];
                    meet_all(&mut sides.iter_mut().collect::<Vec<_>>(), &mut types, &[0, 1]);
                    (*there, *here) = (sides.remove(1), sides.remove(0));
                }
                LogicalPlan::Join(join)
            }
            node => node,
        };
        let node = change_node(node, &in_expression)?;
        match &node.data {
            LogicalPlan::Union(_) | LogicalPlan::Values(_) => Ok(node),
            _ => node.map_data(LogicalPlan::recompute_schema),
        }
    })
    .data()
}

fn in_expression(mut part: Expr, types: &mut Types) -> Result<Change> {
    if let Some(whole) = whole_quotient(&mut part, types) {
        return Ok(whole);
    }
    let is_met = match &mut part {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if is_numeric(*op) => {
            let is_met = meet_all(&mut [left.as_mut(), right.as_mut()], types, &[0, 1]);
            is_met || *op == Operator::Divide && widen(left, types)
        }
        Expr::Between(Between { expr, low, high, .. }) => {
            meet_all(&mut [expr.as_mut(), low.as_mut(), high.as_mut()], types, &[0, 1, 2])
        }
        Expr::InList(InList { expr, list, .. }) => {
            let mut all: Vec<&mut Expr> = vec![expr.as_mut()];
            all.extend(list.iter_mut());
            let places: Vec<usize> = (0..all.len()).collect();
            meet_all(&mut all, types, &places)
        }
        Expr::Case(case) => in_case(case, types),
        // A function of the program says itself what its arguments become.
        Expr::ScalarFunction(ScalarFunction { func, args })
            if !makes_struct(func.name()) && !is_registered(func) =>
        {
            let places: Vec<usize> = (0..args.len()).collect();
            meet_all(&mut args.iter_mut().collect::<Vec<_>>(), types, &places)
        }
        Expr::InSubquery(part) => in_subquery(part, types)?,
        _ => false,
    };
    Ok((if is_met { Transformed::yes(part) } else { Transformed::no(part) }, None))
}

/// Gives the dividend more digits, so that the quotient of two DECIMAL has [`QUOTIENT_SCALE`] digits after its point:
/// it has four more than the dividend.
fn widen(dividend: &mut Expr, types: &mut Types) -> bool {
    let [Some(left), Some(right)] = types.as_slice() else { return false };
    let coerced = BinaryTypeCoercer::new(left, &Operator::Divide, right).get_input_types();
    let Ok((DataType::Decimal128(p, s), DataType::Decimal128(_, t))) = coerced else {
        return false;
    };
    let (p, s, t) = (i16::from(p), i16::from(s), i16::from(t));
    let room = i16::from(DECIMAL128_MAX_PRECISION) - (p - s + t);
    let more = room.min(QUOTIENT_SCALE) - (s + 4);
    let (Ok(precision), Ok(scale)) = (u8::try_from(p + more), i8::try_from(s + more)) else {
        return false;
    };
    if more <= 0 {
        return false;
    }
    let wider = DataType::Decimal128(precision, scale);
    *dividend = Expr::Cast(Cast::new(Box::new(std::mem::take(dividend)), wider.clone()));
    types[0] = Some(wider);
    true
}

/// The quotient of two integers of which only DECIMAL holds all values, `BIGINT UNSIGNED` and a signed one: an integer, too.
fn whole_quotient(part: &mut Expr, types: &Types) -> Option<Change> {
    let Expr::BinaryExpr(BinaryExpr { left, op: Operator::Divide, right }) = part else {
        return None;
    };
    let [Some(dividend), Some(divisor)] = types.as_slice() else { return None };
    if !dividend.is_integer() || !divisor.is_integer() {
        return None;
    }
    let coerced = BinaryTypeCoercer::new(dividend, &Operator::Divide, divisor).get_input_types();
    let (dividend, divisor) = coerced.ok().filter(|(dividend, _)| dividend.is_decimal())?;
    let result = dividend.clone();
    let operands = [(left, dividend), (right, divisor)];
    let operands = operands.map(|(operand, kind)| {
        Expr::Cast(Cast::new(Box::new(std::mem::take(operand.as_mut())), kind))
    });
    let call = ScalarFunction::new_udf(Arc::clone(&WHOLE_QUOTIENT), operands.to_vec());
    Some((Transformed::yes(Expr::ScalarFunction(call)), Some(result)))
}

fn is_numeric(operator: Operator) -> bool {
    matches!(
        operator,
        Operator::Eq
            | Operator::NotEq
            | Operator::Lt
            | Operator::LtEq
            | Operator::Gt
            | Operator::GtEq
            | Operator::IsDistinctFrom
            | Operator::IsNotDistinctFrom
            | Operator::Plus
            | Operator::Minus
            | Operator::Multiply
            | Operator::Divide
            | Operator::Modulo
    )
}

/// Functions whose arguments keep types of their own.
fn makes_struct(name: &str) -> bool {
    matches!(name, "named_struct" | "struct" | "row")
}

/// CASE compares its operand with the conditions, if it has one, and returns one of the results.
fn in_case(case: &mut Case, types: &mut Types) -> bool {
    let has_operand = case.expr.is_some();
    let mut all: Vec<&mut Expr> = case.expr.iter_mut().map(Box::as_mut).collect();
    let (mut compared, mut returned): (Vec<usize>, Vec<usize>) = ((0..all.len()).collect(), vec![]);
    for (when, then) in &mut case.when_then_expr {
        compared.push(all.len());
        returned.push(all.len() + 1);
        all.extend([when.as_mut(), then.as_mut()]);
    }
    if let Some(otherwise) = &mut case.else_expr {
        returned.push(all.len());
        all.push(otherwise.as_mut());
    }
    let is_compared = has_operand && meet_all(&mut all, types, &compared);
    meet_all(&mut all, types, &returned) || is_compared
}

fn in_subquery(part: &mut InSubquery, types: &mut Types) -> Result<bool> {
    let subquery = &part.subquery.subquery;
    let inner = subquery.schema().field(0).data_type();
    match (types.first(), as_double(inner)) {
        (Some(Some(outer)), Some(double)) if is_floating(outer) => {
            let cast = cast_columns(subquery.as_ref().clone(), &[Some(double)])?;
            part.subquery.subquery = Arc::new(cast);
            Ok(true)
        }
        (Some(Some(outer)), None) if is_floating(inner) => {
            let Some(double) = as_double(outer) else { return Ok(false) };
            *part.expr = to_double(std::mem::take(part.expr.as_mut()), double);
            Ok(true)
        }
        _ => Ok(false),
    }
}

/// Casts the DECIMAL ones of some operands to DOUBLE, if one of them is floating point.
fn meet_all(all: &mut [&mut Expr], types: &mut Types, places: &[usize]) -> bool {
    let floating =
        |place: &usize| types.get(*place).is_some_and(|of| of.as_ref().is_some_and(is_floating));
    if !places.iter().any(floating) {
        return false;
    }
    let mut met = false;
    for &place in places {
        let double = types.get(place).and_then(Option::as_ref).and_then(as_double);
        if let (Some(double), Some(operand)) = (double, all.get_mut(place)) {
            **operand = to_double(std::mem::take(*operand), double.clone());
            types[place] = Some(double);
            met = true;
        }
    }
    met
}

/// The rows of the inputs, in columns that hold them all.
fn unite(union: Union) -> Result<LogicalPlan> {
    let Union { inputs, schema } = union;
    let floating: Vec<bool> = (0..schema.fields().len())
        .map(|column| inputs.iter().any(|input| is_floating(type_at(input.schema(), column))))
        .collect();
    let united = inputs.into_iter().map(|input| {
        let doubles: Vec<Option<DataType>> = floating
            .iter()
            .enumerate()
            .map(|(column, floating)| {
                as_double(type_at(input.schema(), column)).filter(|_| *floating)
            })
            .collect();
        if doubles.iter().all(Option::is_none) {
            return Ok(input);
        }
        cast_columns(Arc::unwrap_or_clone(input), &doubles).map(Arc::new)
    });
    let inputs = united.collect::<Result<Vec<_>>>()?;
    Union::try_new_with_loose_types(inputs).map(LogicalPlan::Union)
}

fn type_at(schema: &DFSchemaRef, column: usize) -> &DataType {
    schema.fields().get(column).map_or(&DataType::Null, |field| field.data_type())
}

/// The plan with some columns cast, under their names.
fn cast_columns(plan: LogicalPlan, types: &[Option<DataType>]) -> Result<LogicalPlan> {
    let columns = plan.schema().iter().zip(types);
    let cast: Vec<Expr> = columns
        .map(|((qualifier, field), wanted)| {
            let column = Expr::from((qualifier, field));
            match wanted {
                None => column,
                Some(wanted) => to_double(column, wanted.clone())
                    .alias_qualified(qualifier.cloned(), field.name()),
            }
        })
        .collect();
    LogicalPlanBuilder::from(plan).project(cast)?.build()
}

/// VALUES with a column of DOUBLE where DataFusion has cast DOUBLE to DECIMAL.
fn unite_rows(values: Values) -> Result<LogicalPlan> {
    let Values { schema, values: mut rows } = values;
    let nothing = DFSchema::empty();
    let was_floating = |value: &Expr| matches!(value, Expr::Cast(cast) if cast.expr.get_type(&nothing).is_ok_and(|of| is_floating(&of)));
    let mut fields: Vec<_> =
        schema.iter().map(|(qualifier, field)| (qualifier.cloned(), Arc::clone(field))).collect();
    let mut changed = false;
    for (column, (_, field)) in fields.iter_mut().enumerate() {
        let Some(double) = as_double(field.data_type()) else { continue };
        if !rows.iter().any(|row| was_floating(&row[column])) {
            continue;
        }
        changed = true;
        *field = Arc::new(field.as_ref().clone().with_data_type(double.clone()));
        for row in &mut rows {
            let value = match std::mem::take(&mut row[column]) {
                Expr::Cast(cast) => *cast.expr,
                value => value,
            };
            row[column] = match value.get_type(&nothing)? {
                of if of == double => value,
                _ => to_double(value, double.clone()),
            };
        }
    }
    let schema = match changed {
        true => Arc::new(DFSchema::new_with_metadata(fields, schema.metadata().clone())?),
        false => schema,
    };
    Ok(LogicalPlan::Values(Values { schema, values: rows }))
}
