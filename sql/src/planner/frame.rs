//! Syntax of window frames.

use std::ops::ControlFlow;

use sqlparser::ast::{
    Expr, Interval, NamedWindowDefinition, NamedWindowExpr, Query, Select, Value, ValueWithSpan,
    VisitMut, VisitorMut, WindowFrame, WindowFrameBound, WindowType,
};

/// Rewrites the bounds of window frames to the form that DataFusion accepts: `INTERVAL 6 HOURS` becomes
/// `INTERVAL '6' HOURS`.
pub(crate) fn normalize(query: &mut Query) {
    let ControlFlow::Continue(()) = VisitMut::visit(query, &mut Frames);
}

struct Frames;

impl VisitorMut for Frames {
    type Break = std::convert::Infallible;

    fn pre_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<Self::Break> {
        if let Expr::Function(function) = expression
            && let Some(WindowType::WindowSpec(window)) = &mut function.over
            && let Some(frame) = &mut window.window_frame
        {
            normalize_frame(frame);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Self::Break> {
        for NamedWindowDefinition(_, window) in &mut select.named_window {
            if let NamedWindowExpr::WindowSpec(window) = window
                && let Some(frame) = &mut window.window_frame
            {
                normalize_frame(frame);
            }
        }
        ControlFlow::Continue(())
    }
}

fn normalize_frame(frame: &mut WindowFrame) {
    for bound in [Some(&mut frame.start_bound), frame.end_bound.as_mut()].into_iter().flatten() {
        if let WindowFrameBound::Preceding(Some(offset)) | WindowFrameBound::Following(Some(offset)) =
            bound
            && let Expr::Interval(Interval { value, .. }) = offset.as_mut()
            && let Expr::Value(ValueWithSpan { value, .. }) = value.as_mut()
            && let Value::Number(number, _) = value
        {
            *value = Value::SingleQuotedString(std::mem::take(number));
        }
    }
}
