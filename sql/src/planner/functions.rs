//! The functions that SQL can call: DataFusion's, and ours in place of some or beside them.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use datafusion_expr::planner::ExprPlanner;
use datafusion_expr::{AggregateUDF, HigherOrderUDF, ScalarUDF, WindowUDF};

use super::arg_extremes;
use super::named_casts::NamedCasts;
use super::now;
use super::operators::Operators;
use super::sum;

/// Functions by name, aliases included.
pub(crate) struct Functions {
    pub(crate) scalar: HashMap<String, Arc<ScalarUDF>>,
    pub(crate) higher_order: HashMap<String, Arc<HigherOrderUDF>>,
    pub(crate) aggregate: HashMap<String, Arc<AggregateUDF>>,
    pub(crate) window: HashMap<String, Arc<WindowUDF>>,
    /// Planners of EXTRACT, SUBSTRING … FROM, `array[1]` and similar syntax.
    pub(crate) planners: Vec<Arc<dyn ExprPlanner>>,
}

/// Built when first needed, and shared, since it does not depend on a catalog.
pub(crate) static FUNCTIONS: LazyLock<Functions> = LazyLock::new(|| {
    let scalar = datafusion_functions::all_default_functions()
        .into_iter()
        .chain(datafusion_functions_nested::all_default_nested_functions());
    Functions {
        // A later function replaces an earlier one of the same name.
        scalar: by_name(
            scalar.chain(now::functions()),
            |function| function.name(),
            |function| function.aliases(),
        ),
        higher_order: by_name(
            datafusion_functions_nested::all_default_higher_order_functions(),
            |function| function.name(),
            |function| function.aliases(),
        ),
        aggregate: by_name(
            datafusion_functions_aggregate::all_default_aggregate_functions()
                .into_iter()
                .chain(arg_extremes::functions())
                .chain([sum::function()]),
            |function| function.name(),
            |function| function.aliases(),
        ),
        window: by_name(
            datafusion_functions_window::all_default_window_functions(),
            |function| function.name(),
            |function| function.aliases(),
        ),
        planners: vec![
            Arc::new(datafusion_functions::core::planner::CoreFunctionPlanner::default()),
            Arc::new(datafusion_functions_nested::planner::NestedFunctionPlanner),
            Arc::new(datafusion_functions_nested::planner::FieldAccessPlanner),
            Arc::new(datafusion_functions::datetime::planner::DatetimeFunctionPlanner),
            Arc::new(datafusion_functions::unicode::planner::UnicodeFunctionPlanner),
            Arc::new(NamedCasts),
            Arc::new(Operators),
            Arc::new(datafusion_functions_aggregate::planner::AggregateFunctionPlanner),
            Arc::new(datafusion_functions_window::planner::WindowFunctionPlanner),
        ],
    }
});

/// How a function takes its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FunctionKind {
    /// One at a time.
    Scalar,
    /// All of a group, or of a window with OVER.
    Aggregate,
    /// All of a window, and only with OVER.
    Window,
}

/// The kind of the function that a name, folded, stands for, as DataFusion looks it up; `None` without such a function.
pub(crate) fn function_kind(name: &str, is_window: bool) -> Option<FunctionKind> {
    // Some aggregates have a twin that is made for windows, which is preferred there.
    let has_twin = matches!(name, "first_value" | "last_value" | "nth_value");
    let is_unnest = matches!(name, "unnest" | "unnest_outer");
    let is_scalar =
        FUNCTIONS.scalar.contains_key(name) || FUNCTIONS.higher_order.contains_key(name);
    if is_unnest || is_scalar {
        Some(FunctionKind::Scalar)
    } else if FUNCTIONS.aggregate.contains_key(name) && !(is_window && has_twin) {
        Some(FunctionKind::Aggregate)
    } else if FUNCTIONS.window.contains_key(name) {
        Some(FunctionKind::Window)
    } else {
        None
    }
}

/// The names of all functions that can be called without OVER.
pub(crate) fn function_names() -> impl Iterator<Item = &'static str> {
    FUNCTIONS.scalar.keys().chain(FUNCTIONS.aggregate.keys()).map(String::as_str)
}

fn by_name<F>(
    functions: impl IntoIterator<Item = Arc<F>>,
    name: impl Fn(&F) -> &str,
    aliases: impl Fn(&F) -> &[String],
) -> HashMap<String, Arc<F>> {
    let mut by_name = HashMap::new();
    for function in functions {
        for alias in aliases(&function) {
            by_name.insert(alias.clone(), Arc::clone(&function));
        }
        by_name.insert(name(&function).to_string(), function);
    }
    by_name
}
