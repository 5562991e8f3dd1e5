//! Functions of a program's own.
//!
//! A program registers them before it opens an engine, with [`Builder::function`] and [`Builder::aggregate`], and calls them
//! in SQL like others. They are DataFusion's: a [`ScalarUDF`] computes a column from columns, an [`AggregateUDF`] a value from
//! the rows of a group or, with `OVER`, of a window. The types needed to write them are re-exported here.
//!
//! ```
//! use std::sync::Arc;
//!
//! use alluvium::Engine;
//! use alluvium::arrow::array::{AsArray, StringArray};
//! use alluvium::arrow::datatypes::DataType;
//! use alluvium::functions::{ColumnarValue, Volatility, create_udf};
//!
//! let slug = create_udf(
//!     "slug",
//!     vec![DataType::Utf8],
//!     DataType::Utf8,
//!     Volatility::Immutable,
//!     Arc::new(|arguments: &[ColumnarValue]| {
//!         let [titles] = &ColumnarValue::values_to_arrays(arguments)?[..] else { unreachable!("one is declared") };
//!         let slugs = titles.as_string::<i32>().iter().map(|title| Some(title?.to_lowercase().replace(' ', "-")));
//!         Ok(ColumnarValue::Array(Arc::new(slugs.collect::<StringArray>())))
//!     }),
//! );
//! let engine = Engine::builder().workers(1).function(slug).open_in_memory()?;
//! engine.execute(
//!     "CREATE TABLE post (title VARCHAR);
//!      CREATE MATERIALIZED VIEW slugs AS SELECT slug(title) AS slug, COUNT(*) AS posts FROM post GROUP BY 1;
//!      INSERT INTO post VALUES ('Hello World'), ('hello world')",
//! )?;
//! let rows = engine.query("SELECT posts FROM slugs WHERE slug = 'hello-world'")?;
//! assert_eq!(rows[0].num_rows(), 1);
//! # Ok::<(), alluvium::Error>(())
//! ```
//!
//! # What a function has to hold to
//!
//! - Its [volatility](Volatility) is true. Queries call all functions, views only those that are `Immutable`: equal arguments
//!   have equal results, whatever the time, the thread or the rows beside them. A view whose function does not hold to that
//!   is wrong, without any sign.
//! - It returns the type that it announces, one value for each row, and NULL only if it announces that. Anything else
//!   is an error, and so are its own errors and its panics: of the statement, or in a view of the row or
//!   the group.
//! - An aggregate has a value over no rows. If that is not NULL, [`AggregateUDFImpl::default_value`] returns it, and no group
//!   has NULL. Its result does not depend on the order of rows, or the call has `ORDER BY`.
//!
//! Columns of text are `Utf8`, and what SQL calls `VARCHAR` is never `Utf8View`; a [`Signature`] that names other types has
//! arguments cast. In a view, a result has to be of a type that tables can have, apart from text and binary of another layout.
//!
//! # How they are computed
//!
//! A view evaluates a scalar function for rows that change, many at a time, also when they are removed. It recomputes an aggregate
//! from all rows of each group that changes, through an [`Accumulator`]. Groups accumulators and hints for the optimizer are
//! not used. With `DISTINCT` the accumulator is given each row once.
//!
//! # State that outlives the program
//!
//! A [state directory](crate::Builder::state) has the text of a view, and not the function. To open the directory, a program
//! registers all functions that its views call, and those of views that were dropped since the last checkpoint. Without one
//! it cannot be opened, and is left as it is. A function whose types have changed makes its views be computed again. One that
//! computes something else under the same name and types does not: drop the view and create it again, or give the function
//! another name.
//!
//! [`Builder::function`]: crate::Builder::function
//! [`Builder::aggregate`]: crate::Builder::aggregate

pub use alluvium_sql::planner::{NAME_OF_NONE, REFERENCE};
pub use datafusion::error::{DataFusionError, Result};
pub use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
pub use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, ColumnarValue, ReturnFieldArgs,
    ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature, Volatility,
    create_udaf, create_udf,
};
pub use datafusion::scalar::ScalarValue;
