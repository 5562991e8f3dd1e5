//! Nodes of the incremental plan, with their columns and unique keys derived from their inputs.

use std::collections::BTreeSet;
use std::sync::Arc;

use alluvium_dataflow::aggregate::{Aggregate, Fallback, Function};
use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Field, Schema};
use datafusion_common::{Result, plan_err};

use super::expression::{self, Expression};
use super::{IncrementalPlan, Node, top};

/// The plans that a node reads, by reference, or to be changed.
macro_rules! inputs {
    ($node:expr, $iter:ident) => {
        match $node {
            Node::Scan { .. }
            | Node::Stream { .. }
            | Node::Index { .. }
            | Node::Constant { .. } => Vec::new(),
            Node::Map { input, .. }
            | Node::Unnest { input, .. }
            | Node::Aggregate { input, .. }
            | Node::Distinct { input }
            | Node::Top { input, .. }
            | Node::Window { input, .. }
            | Node::View { input, .. } => vec![input],
            Node::Join { left, right, .. }
            | Node::OuterJoin { left, right, .. }
            | Node::SetOperation { left, right, .. } => vec![left, right],
            Node::Union { inputs } => inputs.$iter().collect(),
        }
    };
}

impl IncrementalPlan {
    /// The rows of a relation, of which `schema` are all columns and in which `append_only` tells whether rows
    /// only ever come.
    pub(crate) fn scan(
        relation: String,
        schema: &Schema,
        columns: Vec<usize>,
        primary_key: &[usize],
        append_only: bool,
    ) -> Result<IncrementalPlan> {
        let key: Option<Vec<usize>> =
            primary_key.iter().map(|key| columns.iter().position(|column| column == key)).collect();
        let unique = key.filter(|key| !key.is_empty()).into_iter().collect();
        let schema = Arc::new(schema.project(&columns)?);
        Ok(IncrementalPlan { node: Node::Scan { relation, columns }, schema, unique, append_only })
    }

    /// The rows that pass through a table that keeps no contents, of which `schema` are all columns.
    pub(crate) fn stream(
        relation: String,
        schema: &Schema,
        columns: Vec<usize>,
    ) -> Result<IncrementalPlan> {
        Ok(IncrementalPlan {
            schema: Arc::new(schema.project(&columns)?),
            node: Node::Stream { relation, columns },
            unique: Vec::new(),
            append_only: true,
        })
    }

    /// All columns of a relation that never has more than one row.
    pub(crate) fn one_row_scan(relation: String, schema: &Schema) -> IncrementalPlan {
        let columns = (0..schema.fields().len()).collect();
        let schema = Arc::new(schema.clone());
        let node = Node::Scan { relation, columns };
        IncrementalPlan { node, schema, unique: vec![Vec::new()], append_only: false }
    }

    /// Rows that never change.
    pub(crate) fn constant(rows: RecordBatch) -> IncrementalPlan {
        let unique = if rows.num_rows() <= 1 { vec![Vec::new()] } else { Vec::new() };
        IncrementalPlan {
            schema: rows.schema(),
            node: Node::Constant { rows },
            unique,
            append_only: true,
        }
    }

    /// The rows for which `filter` is true, as the named expressions; fused with a map below where that
    /// evaluates nothing twice.
    pub(crate) fn map(
        input: IncrementalPlan,
        filter: Option<Expression>,
        project: Vec<(Expression, String)>,
    ) -> Result<IncrementalPlan> {
        let same = filter.is_none()
            && project.len() == input.schema.fields().len()
            && project.iter().enumerate().all(|(number, (expression, name))| {
                expression::as_column(expression) == Some(number)
                    && input.schema.field(number).name() == name
            });
        if same {
            return Ok(input);
        }
        let (input, filter, project) = match input {
            IncrementalPlan {
                node: Node::Map { input: below, filter: filter_below, project: project_below },
                ..
            } if can_fuse(&project_below, &filter, &project) => {
                let replace = |expression| {
                    expression::replace_columns(expression, |column| {
                        Arc::clone(&project_below[column])
                    })
                };
                let filter = expression::and(filter_below, filter.map(replace).transpose()?);
                let project: Result<Vec<_>> = project
                    .into_iter()
                    .map(|(expression, name)| Ok((replace(expression)?, name)))
                    .collect();
                (*below, filter, project?)
            }
            input => (input, filter, project),
        };
        let (input, filter) = top::bounded(input, filter, &project)?;
        let fields: Result<Vec<Field>> = project
            .iter()
            .map(|(expression, name)| {
                let nullable = expression::is_nullable(expression, &input.schema)?;
                Ok(Field::new(name, expression.data_type(&input.schema)?, nullable))
            })
            .collect();
        let passed: Vec<Option<usize>> =
            project.iter().map(|(expression, _)| expression::as_column(expression)).collect();
        let unique = input.unique.iter().filter_map(|key| {
            key.iter()
                .map(|column| passed.iter().position(|passed| *passed == Some(*column)))
                .collect()
        });
        Ok(IncrementalPlan {
            unique: minimal(unique.collect()),
            schema: Arc::new(Schema::new(fields?)),
            append_only: input.append_only,
            node: Node::Map {
                input: Box::new(input),
                filter,
                project: project.into_iter().map(|(expression, _)| expression).collect(),
            },
        })
    }

    /// The rows for which `predicate` is true.
    pub(crate) fn filter(input: IncrementalPlan, predicate: Expression) -> Result<IncrementalPlan> {
        let project = input.identity();
        IncrementalPlan::map(input, Some(predicate), project)
    }

    /// Some columns, in this order.
    pub(crate) fn columns(input: IncrementalPlan, columns: &[usize]) -> Result<IncrementalPlan> {
        let identity = input.identity();
        let project = columns.iter().map(|&column| identity[column].clone()).collect();
        IncrementalPlan::map(input, None, project)
    }

    /// All columns as they are.
    pub(crate) fn identity(&self) -> Vec<(Expression, String)> {
        let fields = self.schema.fields().iter().enumerate();
        fields
            .map(|(number, field)| (expression::column(&self.schema, number), field.name().clone()))
            .collect()
    }

    /// Pairs of rows that agree on the pairs of columns `on`.
    pub(crate) fn join(
        left: IncrementalPlan,
        right: IncrementalPlan,
        on: Vec<(usize, usize)>,
    ) -> Result<IncrementalPlan> {
        check_keys(&left, &right, &on)?;
        let width = left.schema.fields().len();
        let within = |key: &[usize], joined: &dyn Fn(usize) -> bool| {
            key.iter().all(|&column| joined(column))
        };
        let left_once = right
            .unique
            .iter()
            .any(|key| within(key, &|column| on.iter().any(|&(_, r)| r == column)));
        let right_once = left
            .unique
            .iter()
            .any(|key| within(key, &|column| on.iter().any(|&(l, _)| l == column)));
        let shifted =
            |key: &Vec<usize>| -> Vec<usize> { key.iter().map(|column| column + width).collect() };
        let mut unique = Vec::new();
        if left_once {
            unique.extend(left.unique.iter().cloned());
        }
        if right_once {
            unique.extend(right.unique.iter().map(shifted));
        }
        if unique.is_empty() {
            for l in &left.unique {
                unique.extend(
                    right.unique.iter().map(|r| l.iter().copied().chain(shifted(r)).collect()),
                );
            }
        }
        let fields: Vec<_> =
            left.schema.fields().iter().chain(right.schema.fields()).cloned().collect();
        Ok(IncrementalPlan {
            unique: minimal(unique),
            schema: Arc::new(Schema::new(fields)),
            append_only: left.append_only && right.append_only,
            node: Node::Join { left: Box::new(left), right: Box::new(right), on },
        })
    }

    /// Each row once for each element of its lists; `lists` are distinct columns of that type, in ascending order.
    pub(crate) fn unnest(input: IncrementalPlan, lists: Vec<usize>) -> Result<IncrementalPlan> {
        let mut fields: Vec<_> = input.schema.fields().iter().cloned().collect();
        for &list in &lists {
            let DataType::List(element) = fields[list].data_type() else {
                return plan_err!(
                    "\"{}\" is {}, not a list",
                    fields[list].name(),
                    fields[list].data_type()
                );
            };
            fields[list] =
                Arc::new(Field::new(fields[list].name(), element.data_type().clone(), true));
        }
        Ok(IncrementalPlan {
            unique: Vec::new(),
            append_only: input.append_only,
            schema: Arc::new(Schema::new(fields)),
            node: Node::Unnest { input: Box::new(input), lists },
        })
    }

    /// One row per group: the keys, the aggregates, and what is evaluated. Groups without aggregates are a DISTINCT.
    pub(crate) fn aggregate(
        input: IncrementalPlan,
        keys: Vec<usize>,
        aggregates: Vec<(Aggregate, String)>,
        fallbacks: Vec<(Fallback, String)>,
    ) -> Result<IncrementalPlan> {
        if aggregates.is_empty() && fallbacks.is_empty() && !keys.is_empty() {
            return Ok(IncrementalPlan::distinct(IncrementalPlan::columns(input, &keys)?));
        }
        let groups = keys.iter().map(|&key| input.schema.field(key).clone());
        let results = aggregates.iter().map(|(aggregate, name)| {
            Field::new(name, aggregate.result.clone(), aggregate.function != Function::Count)
        });
        let others = fallbacks
            .iter()
            .map(|(function, name)| Field::new(name, function.result.clone(), true));
        let fields: Vec<Field> = groups.chain(results).chain(others).collect();
        let mut unique = vec![(0..keys.len()).collect()];
        unique.extend(input.unique.iter().filter_map(|key| {
            key.iter()
                .map(|column| keys.iter().position(|group| group == column))
                .collect::<Option<Vec<usize>>>()
        }));
        Ok(IncrementalPlan {
            unique: minimal(unique),
            schema: Arc::new(Schema::new(fields)),
            append_only: false,
            node: Node::Aggregate {
                input: Box::new(input),
                keys,
                aggregates: aggregates.into_iter().map(|(aggregate, _)| aggregate).collect(),
                fallbacks: fallbacks.into_iter().map(|(function, _)| function).collect(),
            },
        })
    }

    /// Each row once; the input itself if its rows differ already.
    pub(crate) fn distinct(input: IncrementalPlan) -> IncrementalPlan {
        if !input.unique.is_empty() {
            return input;
        }
        IncrementalPlan {
            unique: vec![(0..input.schema.fields().len()).collect()],
            schema: Arc::clone(&input.schema),
            append_only: input.append_only,
            node: Node::Distinct { input: Box::new(input) },
        }
    }

    /// All rows of all inputs, under the names of `schema`.
    pub(crate) fn union(inputs: Vec<IncrementalPlan>, schema: &Schema) -> Result<IncrementalPlan> {
        let mut flat = Vec::with_capacity(inputs.len());
        for input in inputs {
            match input.node {
                Node::Union { inputs } => flat.extend(inputs),
                _ => flat.push(input),
            }
        }
        let mut fields = Vec::with_capacity(schema.fields().len());
        for (number, field) in schema.fields().iter().enumerate() {
            if let Some(other) = flat
                .iter()
                .map(|input| input.schema.field(number).data_type())
                .find(|other| *other != field.data_type())
            {
                return plan_err!(
                    "column \"{}\" of the UNION is {} here and {other} there",
                    field.name(),
                    field.data_type()
                );
            }
            let nullable = flat.iter().any(|input| input.schema.field(number).is_nullable());
            fields.push(Field::new(field.name(), field.data_type().clone(), nullable));
        }
        Ok(IncrementalPlan {
            unique: Vec::new(),
            schema: Arc::new(Schema::new(fields)),
            append_only: flat.iter().all(|input| input.append_only),
            node: Node::Union { inputs: flat },
        })
    }

    /// A view that is not materialized, written out in place.
    pub(crate) fn view(name: String, input: IncrementalPlan) -> IncrementalPlan {
        IncrementalPlan {
            unique: input.unique.clone(),
            schema: Arc::clone(&input.schema),
            append_only: input.append_only,
            node: Node::View { name, input: Box::new(input) },
        }
    }

    /// Calls `visit` with every relation that is read.
    pub fn visit_relations(&self, visit: &mut impl FnMut(&str)) {
        if let Node::Scan { relation, .. } | Node::Stream { relation, .. } = &self.node {
            visit(relation);
        }
        for input in self.inputs() {
            input.visit_relations(visit);
        }
    }

    /// The nodes right below.
    pub fn inputs(&self) -> Vec<&IncrementalPlan> {
        inputs!(&self.node, iter)
    }

    /// As [`IncrementalPlan::inputs`], to be changed; their columns must stay what they are.
    pub(crate) fn inputs_mut(&mut self) -> Vec<&mut IncrementalPlan> {
        inputs!(&mut self.node, iter_mut)
    }
}

/// Refuses pairs of columns of different types.
pub(super) fn check_keys(
    left: &IncrementalPlan,
    right: &IncrementalPlan,
    on: &[(usize, usize)],
) -> Result<()> {
    for &(l, r) in on {
        let (l, r) = (left.schema.field(l), right.schema.field(r));
        if l.data_type() != r.data_type() {
            return plan_err!(
                "\"{}\" is {} and \"{}\" is {}: they cannot be joined without a CAST",
                l.name(),
                l.data_type(),
                r.name(),
                r.data_type()
            );
        }
    }
    Ok(())
}

/// Whether a map over a map can be one map: whether all that the lower one computes is used at most once.
fn can_fuse(
    below: &[Expression],
    filter: &Option<Expression>,
    project: &[(Expression, String)],
) -> bool {
    let mut uses = vec![0_usize; below.len()];
    for expression in filter.iter().chain(project.iter().map(|(expression, _)| expression)) {
        expression::for_each_column(expression, &mut |column| uses[column] += 1);
    }
    below.iter().zip(uses).all(|(expression, uses)| uses <= 1 || expression::is_free(expression))
}

/// Key sets without repetitions, and without keys that contain another.
pub(super) fn minimal(keys: Vec<Vec<usize>>) -> Vec<Vec<usize>> {
    let sets: BTreeSet<BTreeSet<usize>> =
        keys.into_iter().map(|key| key.into_iter().collect()).collect();
    let is_minimal =
        |key: &BTreeSet<usize>| !sets.iter().any(|other| other != key && other.is_subset(key));
    sets.iter().filter(|key| is_minimal(key)).map(|key| key.iter().copied().collect()).collect()
}
