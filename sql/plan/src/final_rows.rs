//! Which rows of a view are final: `'emit_final' = 'column'` and `EMIT ON WINDOW CLOSE`.

use alluvium_sql_syntax::error::{self, Error, Position, no_column};
use alluvium_sql_syntax::statement::{EmitFinal, ViewDefinition};

use super::{IncrementalPlan, Reason};

/// Whether rows can be final by a column, or why not.
type Finality = std::result::Result<(), Reason>;

/// The column by which rows of a view with this plan are final, if only these are to be emitted.
pub(super) fn column(
    view: &ViewDefinition,
    plan: &IncrementalPlan,
) -> error::Result<Option<usize>> {
    let Some(emit_final) = &view.emit_final else { return Ok(None) };
    let bounds = plan.clone().finality();
    let names: Vec<&str> = plan.schema.fields().iter().map(|field| field.name().as_str()).collect();
    match emit_final {
        EmitFinal::By { column, position } => {
            by_name(view, &bounds, &names, column).map_err(|error| error.at(Some(*position)))
        }
        EmitFinal::OnWindowClose { position } => {
            let numbers = (0..bounds.len()).filter(|number| bounds[*number].is_ok());
            let numbers: Vec<usize> = numbers.collect();
            match numbers[..] {
                [number] => Ok(number),
                [] => Err(none_closes(view, &bounds, &names, *position)),
                _ => {
                    Err(several_close(view, numbers.iter().map(|number| names[*number]), *position))
                }
            }
        }
    }
    .map(Some)
}

/// The number of the column of this name, by which rows can be final.
fn by_name(
    view: &ViewDefinition,
    bounds: &[Finality],
    names: &[&str],
    column: &str,
) -> error::Result<usize> {
    let is = |name: &str| names.iter().position(|known| *known == name);
    let number = is(column).or_else(|| is(&column.to_ascii_lowercase()));
    let number = number.ok_or_else(|| no_column(column, None, names.iter().copied()))?;
    match &bounds[number] {
        Ok(()) => Ok(number),
        Err(reason) => {
            let (name, column) = (&view.name, names[number]);
            let remedy = reason.remedy().map_or_else(String::new, |remedy| format!("; {remedy}"));
            let message =
                format!("no row of \"{name}\" is ever final by \"{column}\": {reason}{remedy}");
            Err(Error::new(message, None))
        }
    }
}

/// Several columns of a view say when windows close.
fn several_close<'a>(
    view: &ViewDefinition,
    columns: impl Iterator<Item = &'a str>,
    at: Position,
) -> Error {
    let columns: Vec<String> = columns.map(|column| format!("'{column}'")).collect();
    let message = format!(
        "rows of \"{}\" can be final by several columns: write WITH ('emit_final' = …) with one of {}",
        view.name,
        columns.join(", ")
    );
    Error::new(message, at)
}

/// Why no column of a view says when its windows close.
fn none_closes(view: &ViewDefinition, bounds: &[Finality], names: &[&str], at: Position) -> Error {
    let reasons = names.iter().zip(bounds).filter_map(|(name, bound)| {
        let reason = bound.as_ref().err()?;
        Some(format!("of \"{name}\", {reason}"))
    });
    let reasons: Vec<String> = reasons.collect();
    let name = &view.name;
    let reasons = reasons.join("; ");
    Error::new(format!("no column of \"{name}\" says when a window closes: {reasons}"), at)
}
