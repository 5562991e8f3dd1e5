//! The catalog as it is seen with the definitions of a program.

use std::sync::Arc;

use alluvium_sql_syntax::error::{Error, Result};
use alluvium_sql_syntax::statement::ViewDefinition;
use arrow::datatypes::{FieldRef, SchemaRef};
use datafusion_expr::LogicalPlan;

use super::SystemSchemas;
use crate::SqlFunctions;
use crate::catalog::{Catalog, Relation};
use crate::checks::extent::Extent;
use crate::context::Scope;
use crate::registered::RegisteredFunctions;
use crate::sql_functions::planned;
use crate::statements::{query, view};

/// A catalog, with the definitions of a program.
#[derive(Clone, Copy)]
pub(crate) struct Visible<'a> {
    relations: &'a dyn Catalog,
    system: &'a SystemSchemas,
    registered: &'a RegisteredFunctions,
    /// The view that is planned, which sees those before it and no relations of users.
    within: Option<usize>,
}

impl<'a> Visible<'a> {
    pub(crate) fn new(
        relations: &'a dyn Catalog,
        system: &'a SystemSchemas,
        registered: &'a RegisteredFunctions,
    ) -> Self {
        Self { relations, system, registered, within: None }
    }

    /// The system view of this name. All catalogs have the same system relations, and it reads no others.
    fn view(&self, name: &str) -> Option<&'a Result<Arc<LogicalPlan>>> {
        let place = *self.system.places.get(name)?;
        if self.within.is_some_and(|within| within <= place) {
            return None;
        }
        let visible = Self { within: Some(place), ..*self };
        Some(self.system.views.get(place)?.planned(|definition| visible.planned(definition)))
    }

    fn planned(&self, definition: &ViewDefinition) -> Result<Arc<LogicalPlan>> {
        let scope = Scope { catalog: self, registered: self.registered };
        let plan = planned(&*definition.query, self, |query| query::plan(query, scope));
        let plan = plan.and_then(|plan| view::name_columns(plan, definition));
        let plan = plan.map_err(|error| {
            let name = &definition.name;
            Error::new(format!("the system view \"{name}\": {}", error.message), None)
        })?;
        // Statements that read it ask again.
        Extent::of(&plan)?;
        Ok(Arc::new(plan))
    }
}

/// A view as statements expand it.
fn relation(plan: &Arc<LogicalPlan>) -> Option<Relation> {
    Some(Relation::View {
        schema: Arc::clone(plan.schema().inner()),
        extent: Extent::of(plan).ok()?,
        plan: plan.clone(),
        local: true,
        emit_final: None,
        lateness: Vec::new(),
    })
}

impl Catalog for Visible<'_> {
    fn relation(&self, name: &str) -> Option<Relation> {
        let view = || self.view(name).and_then(|view| relation(view.as_ref().ok()?));
        let of_others = self.relations.relation(name);
        match self.within {
            None => of_others.or_else(view),
            Some(_) => {
                view().or_else(|| of_others.filter(|it| matches!(it, Relation::System { .. })))
            }
        }
    }

    fn names(&self) -> Vec<String> {
        match self.within {
            None => self.relations.names(),
            Some(_) => Vec::new(),
        }
    }

    fn functions(&self) -> &SqlFunctions {
        self.relations.functions()
    }

    fn outside(&self) -> Vec<(String, SchemaRef)> {
        match self.within {
            None => self.relations.outside(),
            Some(_) => Vec::new(),
        }
    }

    fn parameters(&self) -> &[Option<FieldRef>] {
        match self.within {
            None => self.relations.parameters(),
            Some(_) => &[],
        }
    }

    fn system(&self) -> Option<&SystemSchemas> {
        (!self.system.is_empty()).then_some(self.system)
    }

    fn failure(&self, name: &str) -> Option<Error> {
        self.view(name)?.as_ref().err().cloned()
    }
}
