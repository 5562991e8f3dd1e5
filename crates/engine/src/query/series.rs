//! `generate_series` and `range` in FROM, for DataFusion.

use std::sync::Arc;

use alluvium_sql::planner::SeriesSource;
use datafusion::datasource::TableProvider;
use datafusion::functions_table::generate_series::{GenSeriesArgs, GenerateSeriesTable};
use datafusion::logical_expr::TableSource;

/// The values of a series.
pub(super) fn table(source: &SeriesSource) -> Arc<dyn TableProvider> {
    let series = source.series();
    let name = "generate_series";
    let arguments = match series.last() {
        None => GenSeriesArgs::ContainsNull { name },
        Some(last) => GenSeriesArgs::Int64Args {
            start: series.first,
            end: last,
            step: series.step,
            include_end: true,
            name,
        },
    };
    Arc::new(GenerateSeriesTable::new(source.schema(), arguments))
}
