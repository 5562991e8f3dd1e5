//! Defaults of columns as SQL has them.

use alluvium_sql::functions::sequence::calls_sequence;
use datafusion::logical_expr::Expr;
use datafusion::scalar::ScalarValue;

/// A default as SQL has it.
pub(crate) fn default_text(default: &Expr) -> String {
    match default {
        Expr::Literal(ScalarValue::Utf8(Some(text)), _) => {
            format!("'{}'", text.replace('\'', "''"))
        }
        // A generated column casts the value to its type.
        Expr::Cast(cast) if calls_sequence(&cast.expr) => default_text(&cast.expr),
        Expr::ScalarFunction(call) => {
            let arguments: Vec<String> = call.args.iter().map(default_text).collect();
            format!("{}({})", call.name(), arguments.join(", "))
        }
        other => other.human_display().to_string(),
    }
}
