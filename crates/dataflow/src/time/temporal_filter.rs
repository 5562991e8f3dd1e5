//! Temporal filters: rows whose value in a column compares in some way with a function of the time.
//!
//! The function never falls, so each row comes into view once, or leaves it once: when the function [passes](crate::time::passing)
//! its value. Of a column that has to be *before* the time the rows that have not come into view are kept, of one that has to
//! be *after* it those that are in view. A condition with two ends is two consecutive filters, and each row waits in
//! one of them.

use alluvium_trace::Epoch;
use alluvium_trace::memory::StateContext;
use arrow::datatypes::SchemaRef;
use timely::Container;
use timely::dataflow::Stream;

use crate::movement::delta::DeltaStream;
use crate::rows::codec::CodecError;
use crate::rows::layout::Layout;
use crate::time::passing::{InView, Rule, passing};

/// How a value has to compare with the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `<`: the row comes into view later.
    Before,
    /// `<=`: the row comes into view later.
    BeforeOrAt,
    /// `>`: the row leaves view later.
    After,
    /// `>=`: the row leaves view later.
    AfterOrAt,
}

impl Comparison {
    /// Whether rows come into view as time passes, and do not leave it.
    pub fn comes(self) -> bool {
        matches!(self, Self::Before | Self::BeforeOrAt)
    }

    fn rule(self) -> Rule {
        let in_view = match self.comes() {
            true => InView::Below,
            false => InView::From,
        };
        Rule { in_view, with_equal: matches!(self, Self::BeforeOrAt | Self::After) }
    }
}

/// Which column is compared, and how.
#[derive(Clone, Debug)]
pub struct Spec {
    layout: Layout,
    comparison: Comparison,
}

impl Spec {
    /// Rows of `schema` by `column`. Fails if a column has a type that cannot be stored, or this one a type that cannot be a
    /// key.
    pub fn compile(
        schema: SchemaRef,
        column: usize,
        comparison: Comparison,
    ) -> Result<Self, CodecError> {
        Ok(Self { layout: Layout::keyed(schema, &[column])?, comparison })
    }

    /// The layout of the rows that are kept.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }
}

/// The rows of `stream` that are in view. None has NULL in the column.
///
/// `context` prunes the rows by the column; its bound after an epoch is what the column is compared with in this epoch. Time
/// advances as far as `ticks` says. Exchanges rows so that equal rows meet.
///
/// # Panics
///
/// If the context does not prune.
pub fn temporal_filter<'scope, C: Container>(
    spec: &Spec,
    stream: DeltaStream<'scope, Epoch>,
    ticks: Stream<'scope, Epoch, C>,
    context: &StateContext,
) -> DeltaStream<'scope, Epoch> {
    let rule = spec.comparison.rule();
    passing("TemporalFilter", &spec.layout, rule, stream, Some(ticks), context)
}

#[cfg(test)]
mod tests;
