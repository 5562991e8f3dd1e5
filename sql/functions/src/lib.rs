//! The functions that SQL can call: all of DataFusion's, and those that DataFusion lacks or gets wrong.
//!
//! - `arg_extremes` is not in DataFusion; `extremes` is MIN and MAX of nested values.
//! - `around` is for functions that are those of DataFusion but for some values.
//! - `bytea` reads bytes as Postgres does;
//! - `array_concat` does not depend on the rows beside it.
//! - `sum` does not wrap around; `totals` are sums, means and statistics that do not depend on history;
//! - `approx_distinct` knows floats, `neighbour` is LAG and LEAD by columns;
//! - `percentile` interpolates exactly; `moving` lets all aggregates have frames that move.
//! - `date_bin` and `date_trunc` know all timestamps, `date_part` intervals, `to_timestamp` formats that leave fields out;
//! - `to_char` and these know the patterns of PostgreSQL, too.
//! - `time_zone` is AT TIME ZONE;
//! - `pad` pads to lengths below zero; `similar_to` has the patterns of the standard; `pattern` bounds those that are computed;
//! - `sequence` takes values of sequences.
//! - `duckdb` has DuckDB's functions. `definitions` lists those that SQL defines by others.
//! - `growth` bounds results that may be far larger than their arguments; `microseconds` is the unit of all timestamps;
//! - `other_names` has more names of functions, `near` finds names that may be meant.

mod approx_distinct;
mod arg_extremes;
mod around;
mod array_concat;
mod bound;
pub mod bytea;
mod date_bin;
pub mod date_part;
mod date_trunc;
pub mod decimal;
pub mod duckdb;
mod extremes;
pub mod fault;
mod growth;
pub mod leaves;
pub mod microseconds;
pub mod moving;
pub mod names;
mod neighbour;
mod nested_text;
pub mod now;
mod pad;
mod pattern;
mod percentile;
mod similar_to;
mod sum;
pub mod texts;
mod time_text;
mod time_zone;
mod to_char;
mod to_timestamp;
mod totals;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, LazyLock};

pub use self::bound::{sequence, session};
pub use datafusion_expr::{AggregateUDF, HigherOrderUDF, ScalarUDF, WindowUDF};

use self::names::OTHER_NAMES;
pub use self::names::{DEFINITIONS, FORMS};
pub use self::pattern::{LONGEST_PATTERN, with_bounded_pattern};

/// Functions by name, aliases included.
pub struct Functions {
    /// Functions of one row.
    pub scalar: HashMap<String, Arc<ScalarUDF>>,
    /// Functions that take a lambda.
    pub higher_order: HashMap<String, Arc<HigherOrderUDF>>,
    /// Functions of the rows of a group.
    pub aggregate: HashMap<String, Arc<AggregateUDF>>,
    /// Functions of the rows of a window alone.
    pub window: HashMap<String, Arc<WindowUDF>>,
}

/// Built when first needed, and shared, since it does not depend on a catalog.
pub static FUNCTIONS: LazyLock<Functions> = LazyLock::new(|| {
    let scalar = datafusion_functions::all_default_functions()
        .into_iter()
        .chain(datafusion_functions_nested::all_default_nested_functions());
    // A later function replaces an earlier one of the same name.
    let mut scalar = by_name(
        scalar
            .chain(now::functions())
            .chain(sequence::functions())
            .chain(session::functions())
            .chain(to_timestamp::functions())
            .chain(pad::functions())
            .chain([
                array_concat::function(),
                date_bin::function(),
                date_trunc::function(),
                date_part::function(),
                time_zone::function(),
                to_char::function(),
            ])
            .chain(duckdb::scalar()),
        |function| function.name(),
        |function| function.aliases(),
    );
    let aggregate = by_name(
        datafusion_functions_aggregate::all_default_aggregate_functions()
            .into_iter()
            .chain(arg_extremes::functions())
            .chain(extremes::functions())
            .chain([approx_distinct::function(), percentile::function()])
            .chain(totals::functions())
            .chain(duckdb::aggregate()),
        |function| function.name(),
        |function| function.aliases(),
    );
    for function in duckdb::of_lists(&aggregate) {
        scalar.insert(function.name().to_owned(), function);
    }
    for (other, name) in OTHER_NAMES {
        if let Some(function) = scalar.get(*name).cloned() {
            scalar.insert((*other).to_owned(), function);
        }
    }
    growth::bound(&mut scalar);
    let mut higher_order = by_name(
        datafusion_functions_nested::all_default_higher_order_functions()
            .into_iter()
            .chain([duckdb::reduce()]),
        |function| function.name(),
        |function| function.aliases(),
    );
    if let Some(transform) = higher_order.get("array_transform").cloned() {
        for name in ["list_apply", "array_apply", "apply"] {
            higher_order.insert(name.to_owned(), Arc::clone(&transform));
        }
    }
    if let Some(filter) = higher_order.get("array_filter").cloned() {
        higher_order.insert("filter".to_owned(), filter);
    }
    Functions {
        scalar,
        higher_order,
        aggregate,
        window: by_name(
            datafusion_functions_window::all_default_window_functions()
                .into_iter()
                .chain(neighbour::functions()),
            |function| function.name(),
            |function| function.aliases(),
        ),
    }
});

/// How a function takes its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FunctionKind {
    /// One at a time.
    Scalar,
    /// All of a group, or of a window with OVER.
    Aggregate,
    /// All of a window, and only with OVER.
    Window,
}

/// The kind of the function that a name, folded, stands for, as DataFusion looks it up; `None` without such a function.
pub fn function_kind(name: &str, is_window: bool) -> Option<FunctionKind> {
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
pub fn function_names() -> impl Iterator<Item = &'static str> {
    let registered = FUNCTIONS.scalar.keys().chain(FUNCTIONS.aggregate.keys());
    let defined = DEFINITIONS.iter().filter_map(|(call, _)| call.split_once('('));
    let defined = defined.map(|(name, _)| name).chain(FORMS.iter().copied());
    registered.map(String::as_str).chain(defined)
}

/// The own names of all aggregates but those that SQL defines by others, in order.
pub fn aggregate_names() -> Vec<&'static str> {
    let mut names: Vec<_> = FUNCTIONS.aggregate.values().map(|function| function.name()).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// The names of each function of one row, those that take lambdas included, and of each that SQL defines by others, which
/// may be an aggregate.
pub fn scalar_names() -> Vec<Vec<&'static str>> {
    let mut names: BTreeMap<&str, Vec<&'static str>> = BTreeMap::new();
    for (name, function) in &FUNCTIONS.scalar {
        names.entry(function.name()).or_default().push(name);
    }
    for (name, function) in &FUNCTIONS.higher_order {
        names.entry(function.name()).or_default().push(name);
    }
    let defined = DEFINITIONS.iter().filter_map(|(call, _)| call.split_once('('));
    let mut defined: Vec<_> = defined.map(|(name, _)| name).chain(FORMS.iter().copied()).collect();
    defined.sort_unstable();
    defined.dedup();
    names.into_values().chain(defined.into_iter().map(|name| vec![name])).collect()
}

/// The own name of the scalar function that has this name, which may be an alias.
pub fn scalar_name(name: &str) -> Option<&'static str> {
    let function = FUNCTIONS.scalar.get(name)?;
    let own = FUNCTIONS.scalar.get(function.name())?;
    Arc::ptr_eq(function, own).then(|| own.name())
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
