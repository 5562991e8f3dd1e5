//! How DataFusion plans and evaluates.

use std::sync::{Arc, LazyLock};

use datafusion_common::config::ConfigOptions;

/// Planning options: one string type everywhere, numbers with a point are DECIMAL, and time zone UTC.
pub static OPTIONS: LazyLock<Arc<ConfigOptions>> = LazyLock::new(|| {
    let mut options = ConfigOptions::new();
    options.execution.time_zone = Some("+00:00".to_string());
    options.sql_parser.map_string_types_to_utf8view = false;
    options.sql_parser.collect_spans = true;
    options.sql_parser.parse_float_as_decimal = true;
    options.optimizer.skip_failed_rules = false;
    options.optimizer.max_passes = 2;
    // Uncorrelated scalar subqueries become joins too: `subquery` leaves only those of one row.
    options.optimizer.enable_physical_uncorrelated_scalar_subquery = false;
    Arc::new(options)
});
