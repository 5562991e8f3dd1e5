//! INTERSECT and EXCEPT in the incremental plan.

use std::sync::Arc;

use alluvium_dataflow::sets::SetOperation;
use arrow::datatypes::{Field, Schema};
use datafusion_common::{Result, plan_err};

use super::build::{Builder, check_columns};
use super::{IncrementalPlan, Node};
use crate::planner::{SetOperationNode, set_operation_name};

impl Builder<'_> {
    /// A set operation.
    pub(super) fn set_operation(
        &self,
        node: &SetOperationNode,
    ) -> crate::error::Result<IncrementalPlan> {
        let (left, right) = (self.build(&node.left)?, self.build(&node.right)?);
        let plan = IncrementalPlan::set_operation(
            left,
            right,
            node.operation,
            node.left.schema().as_arrow(),
        )?;
        check_columns(&plan.schema)?;
        Ok(plan)
    }
}

impl IncrementalPlan {
    /// What `operation` leaves of the rows of both inputs, under the names of `schema`.
    pub(crate) fn set_operation(
        left: IncrementalPlan,
        right: IncrementalPlan,
        operation: SetOperation,
        schema: &Schema,
    ) -> Result<IncrementalPlan> {
        let mut fields = Vec::with_capacity(schema.fields().len());
        let sides = left.schema.fields().iter().zip(right.schema.fields());
        for (field, (left, right)) in schema.fields().iter().zip(sides) {
            if left.data_type() != right.data_type() {
                return plan_err!(
                    "column \"{}\" of the {} is {} here and {} there",
                    field.name(),
                    set_operation_name(operation),
                    left.data_type(),
                    right.data_type()
                );
            }
            let nullable = left.is_nullable() || right.is_nullable();
            fields.push(Field::new(field.name(), left.data_type().clone(), nullable));
        }
        let once = match operation {
            SetOperation::Intersect | SetOperation::Except => true,
            SetOperation::IntersectAll => left.is_unique() || right.is_unique(),
            SetOperation::ExceptAll => left.is_unique(),
        };
        let unique = if once { vec![(0..fields.len()).collect()] } else { Vec::new() };
        let append_only = left.append_only
            && right.append_only
            && matches!(operation, SetOperation::Intersect | SetOperation::IntersectAll);
        let node = Node::SetOperation { left: Box::new(left), right: Box::new(right), operation };
        Ok(IncrementalPlan { node, schema: Arc::new(Schema::new(fields)), unique, append_only })
    }

    /// Whether no two rows are equal.
    fn is_unique(&self) -> bool {
        !self.unique.is_empty()
    }
}
