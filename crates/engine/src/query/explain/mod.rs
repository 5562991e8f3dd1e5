//! What views and queries do and keep, for people and programs.
//!
//! - [`explanation`]: a plan with what is known of it, from which all formats are written: [`text`], [`json`], [`dot`] and [`svg`]. The last two show
//!   the [`lines`] of boxes. [`layout`] places the boxes of JSON and SVG.
//! - [`view`]: EXPLAIN VIEW.
//! - [`state`]: EXPLAIN STATE, and the reasons for state in `alluvium.arrangements`.
//! - [`analyze`]: EXPLAIN ANALYZE of a view, [`outputs`] those that hold it up, and [`sharing`] what other views keep as well.
//! - [`query`]: EXPLAIN of a query, and [`measured`] the work of its operators.
//! - [`create_index`]: the statement to create an index that would help.

mod analyze;
mod create_index;
mod dot;
mod explanation;
mod json;
mod layout;
mod lines;
pub(super) mod measured;
mod outputs;
pub(super) mod query;
mod sharing;
pub(super) mod state;
mod svg;
mod text;
mod view;

pub(crate) use self::explanation::Explanation;
pub(crate) use self::view::explain_view;
