//! Checking a definition: it is planned as a query of its parameters.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use alluvium_sql_functions::names::did_you_mean;
use alluvium_sql_functions::{FunctionKind, function_kind};
use alluvium_sql_syntax::error::{Error, Position, Result};
use alluvium_sql_syntax::statement::column_type;
use alluvium_sql_syntax::statement::{Alluvium, FunctionDefinition, fold};
use alluvium_sql_syntax::syntax::called;
use arrow::datatypes::{Field, Schema};
use sqlparser::ast::{
    self, ColumnDef, Expr, GroupByExpr, Ident, Query, SelectItem, SetExpr, Value, VisitMut,
    VisitorMut, visit_expressions,
};
use sqlparser::parser::Parser;

use super::SqlFunction;
use super::inline::{Inlined, cast, extent, inlined, lambda_parameters, without_system_calls};
use crate::catalog::{Catalog, Relation};
use crate::context::Scope;
use crate::culprit;
use crate::registered::{is_built_in, is_written_as_call};
use crate::statements::query;
use crate::system::SystemSchemas;

/// The relation of a function's parameters.
const PARAMETERS: &str = "parameters";

/// The function that a definition defines.
pub(crate) fn define(definition: &FunctionDefinition, scope: Scope<'_>) -> Result<SqlFunction> {
    let name = &definition.name;
    check_name(definition, scope)?;
    let mut seen = BTreeSet::new();
    for parameter in &definition.parameters {
        if !seen.insert(&parameter.name) {
            let message = format!("two parameters of {name}() are called \"{}\"", parameter.name);
            return Err(Error::new(message, parameter.position));
        }
    }
    let mut body = definition.body.as_ref().clone();
    let mut names = Names { definition, lambdas: Vec::new() };
    if let ControlFlow::Break(error) = VisitMut::visit(&mut body, &mut names) {
        return Err(error);
    }
    let returned = match &definition.returns {
        None => body,
        returns => cast(body, returns.as_ref()),
    };
    let Inlined { part: body, calls } = inlined(&returned, scope.catalog)?;
    plan(definition, &body, scope)?;
    let levels = extent(&body).1;
    let parameters = definition.parameters.iter();
    Ok(SqlFunction {
        name: name.clone(),
        parameters: parameters.map(|it| (it.name.clone(), it.data_type.clone())).collect(),
        body,
        levels,
        calls,
        text: definition.text.clone(),
        pads: false,
    })
}

impl SqlFunction {
    /// A function of the program's own. Its expression is planned where it is called: it may have queries, in which its
    /// parameters do not stand. A call may leave out arguments at its end.
    pub(crate) fn of_system(
        definition: &FunctionDefinition,
        system: &SystemSchemas,
    ) -> Result<SqlFunction> {
        let body = definition.body.as_ref().clone();
        let returned = match &definition.returns {
            None => body,
            returns => cast(body, returns.as_ref()),
        };
        let body = without_system_calls(returned, system)?;
        let parameters = definition.parameters.iter();
        Ok(SqlFunction {
            name: definition.name.clone(),
            parameters: parameters.map(|it| (it.name.clone(), it.data_type.clone())).collect(),
            levels: extent(&body).1,
            body,
            calls: Vec::new(),
            text: definition.text.clone(),
            pads: true,
        })
    }
}

/// Refuses the name of another function, and one that SQL cannot call.
fn check_name(definition: &FunctionDefinition, scope: Scope<'_>) -> Result<()> {
    let FunctionDefinition { name, position, .. } = definition;
    let message = if is_built_in(name) {
        format!("{name}() is a built-in function: take another name")
    } else if scope.registered.kind(name).is_some() {
        format!("{name}() is a function of this program: take another name")
    } else if !is_written_as_call(name) {
        format!(
            "SQL cannot call a function of the name \"{name}\": take a word of lower-case letters, digits and underscores \
             that means nothing else"
        )
    } else {
        return Ok(());
    };
    Err(Error::new(message, *position))
}

/// Refuses names that are not parameters, and gives those of lambdas names that no argument has.
struct Names<'a> {
    definition: &'a FunctionDefinition,
    /// The parameters of the lambdas around.
    lambdas: Vec<Vec<String>>,
}

impl Names<'_> {
    /// The name of a lambda's parameter.
    fn apart(&self, name: &str) -> String {
        format!("{}.{name}", self.definition.name)
    }

    fn resolve(&self, name: &mut Ident) -> ControlFlow<Error> {
        let folded = fold(name);
        if self.lambdas.iter().flatten().any(|known| *known == folded) {
            (name.value, name.quote_style) = (self.apart(&folded), Some('"'));
            return ControlFlow::Continue(());
        }
        let mut parameters = self.definition.parameters.iter().map(|it| it.name.as_str());
        if parameters.clone().any(|known| known == folded) {
            return ControlFlow::Continue(());
        }
        let near = did_you_mean(&folded, &mut parameters);
        let message = format!("{}() has no parameter \"{folded}\"{near}", self.definition.name);
        ControlFlow::Break(Error::new(message, Position::of_span(name.span)))
    }
}

impl VisitorMut for Names<'_> {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        let what = "a query in a function";
        ControlFlow::Break(Error::not_supported(what, Position::of(&*query)))
    }

    fn pre_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<Error> {
        match expression {
            Expr::Identifier(name) => self.resolve(name),
            Expr::CompoundIdentifier(names) => {
                names.first_mut().map_or(ControlFlow::Continue(()), |name| self.resolve(name))
            }
            Expr::Lambda(lambda) => {
                let names = lambda_parameters(lambda).map(|name| fold(name)).collect();
                for name in lambda_parameters(lambda) {
                    (name.value, name.quote_style) = (self.apart(&fold(name)), Some('"'));
                }
                self.lambdas.push(names);
                ControlFlow::Continue(())
            }
            Expr::Function(call) if called(call).as_ref() == Some(&self.definition.name) => {
                let message = format!("{}() calls itself", self.definition.name);
                ControlFlow::Break(Error::new(message, Position::of(&call.name)))
            }
            Expr::Value(value) if matches!(value.value, Value::Placeholder(_)) => {
                let message =
                    format!("a function has the parameters that it names, and not {}", value.value);
                ControlFlow::Break(Error::new(message, Position::of_span(value.span)))
            }
            _ => ControlFlow::Continue(()),
        }
    }

    fn post_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<Error> {
        if let Expr::Lambda(_) = expression {
            self.lambdas.pop();
        }
        ControlFlow::Continue(())
    }
}

/// Plans the expression over a relation of the parameters, if these have types. If it has an aggregate, it is that of a group.
fn plan(definition: &FunctionDefinition, body: &Expr, scope: Scope<'_>) -> Result<()> {
    let mut fields = Vec::with_capacity(definition.parameters.len());
    let mut is_typed = true;
    for parameter in &definition.parameters {
        let Some(data_type) = &parameter.data_type else {
            is_typed = false;
            continue;
        };
        let name = Ident::with_quote('"', &parameter.name);
        let column = ColumnDef { name, data_type: data_type.clone(), options: Vec::new() };
        let data_type = column_type(&column).map_err(|error| error.at(parameter.position))?;
        fields.push(Field::new(&parameter.name, data_type, true));
    }
    if !is_typed {
        return Ok(());
    }
    let catalog = Parameters { schema: Arc::new(Schema::new(fields)) };
    let scope = Scope { catalog: &catalog, ..scope };
    let query = of_parameters(definition, body)?;
    let located = |query: &Query| query::plan(query, scope);
    match query::plan(&query, scope) {
        Ok(_) => Ok(()),
        Err(error) => {
            let error = culprit::located(error, &query, &located);
            Err(error.at(Position::of(body)).at(Some(definition.position)))
        }
    }
}

/// `SELECT body FROM parameters`
fn of_parameters(definition: &FunctionDefinition, body: &Expr) -> Result<Query> {
    let text = match definition.parameters.is_empty() {
        true => "SELECT 1".to_owned(),
        false => format!("SELECT 1 FROM {PARAMETERS}"),
    };
    let parsed = Parser::new(&Alluvium::new(text.len()))
        .try_with_sql(&text)
        .and_then(|mut parser| parser.parse_query());
    let mut query = *parsed.map_err(|error| Error::new(error.to_string(), None))?;
    if let SetExpr::Select(select) = query.body.as_mut() {
        select.projection = vec![SelectItem::ExprWithAlias {
            expr: body.clone(),
            alias: Ident::with_quote('"', &definition.name),
        }];
        if has_aggregate(body) {
            let keys = definition.parameters.iter();
            let keys = keys.map(|it| Expr::Identifier(Ident::with_quote('"', &it.name)));
            select.group_by = GroupByExpr::Expressions(keys.collect(), Vec::new());
        }
    }
    Ok(query)
}

fn has_aggregate(body: &Expr) -> bool {
    let is_aggregate = |call: &ast::Function| {
        let kind = called(call).and_then(|name| function_kind(&name, false));
        kind == Some(FunctionKind::Aggregate) && call.over.is_none()
    };
    visit_expressions(body, |expression| match expression {
        Expr::Function(call) if is_aggregate(call) => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    })
    .is_break()
}

/// A catalog of the parameters of a function.
struct Parameters {
    schema: Arc<Schema>,
}

impl Catalog for Parameters {
    fn relation(&self, name: &str) -> Option<Relation> {
        (name == PARAMETERS).then(|| Relation::Table {
            schema: Arc::clone(&self.schema),
            primary_key: Vec::new(),
            promised_key: Vec::new(),
            uniques: Vec::new(),
            defaults: vec![None; self.schema.fields().len()],
            always_generated: Vec::new(),
            kept: true,
            append_only: false,
            waterlines: Vec::new(),
        })
    }

    fn names(&self) -> Vec<String> {
        Vec::new()
    }
}
