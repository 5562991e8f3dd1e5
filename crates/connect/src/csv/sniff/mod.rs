//! Detects the dialect of a CSV file from its first records.
//!
//! As in Döhmen, Mühleisen and Boncz, *Multi-Hypothesis CSV Parsing* (SSDBM 2017), and in DuckDB's sniffer: every dialect
//! that may be meant ([`hypotheses`]) reads the [`sample`], and its [`trial`] tells whether all records have equally many
//! fields, and how many of them have fields that no writer would write so ([`cell`]). Two rules differ:
//!
//! - A dialect is detected only if no other one that reads the same records otherwise is about as good. Otherwise, or if
//!   a character explains the file that is rarely a delimiter, the user is asked.
//! - Where it is known which columns there have to be, only dialects count that give them, and the usual one stands in
//!   doubt.

mod cell;
mod hypotheses;
mod sample;
mod trial;

use arrow::datatypes::SchemaRef;

use super::dialect::Dialect;
use super::options::{Given, Options};
pub use sample::{Sample, separator};
use trial::Trial;

/// What is known of the columns before.
#[derive(Clone, Copy)]
pub enum Columns<'a> {
    /// Nothing.
    Unknown,
    /// These: all of them in order, or those that a header names.
    Known(&'a SchemaRef),
}

/// The dialect of a sample, as far as it is not given; or why it cannot be told, and what to do.
///
/// `usual` is the dialect of a file that has nothing to tell from.
pub fn dialect(
    sample: &Sample,
    options: &Options,
    usual: Dialect,
    columns: Columns<'_>,
) -> Result<Dialect, String> {
    let mut given = options.given;
    if let Some(delimiter) = sample.named_delimiter() {
        given.delimiter.get_or_insert(delimiter);
    }
    let usual = given.or(usual);
    let try_all = |comments| -> Vec<Trial> {
        let dialects = hypotheses::dialects(sample, &given, usual, comments, columns);
        dialects.into_iter().map(|dialect| Trial::new(dialect, sample, options, columns)).collect()
    };
    let mut trials = try_all(hypotheses::Comments::Given);
    if !trials.iter().any(Trial::is_consistent) {
        trials.extend(
            try_all(hypotheses::Comments::Detected).into_iter().filter(Trial::is_consistent),
        );
    }
    let found = match trials.iter().any(Trial::is_consistent) {
        true => consistent(&trials, usual),
        false => ragged(&trials, &given, usual),
    };
    let found = match (found, columns) {
        (Ok(found), _) => found,
        // The rows that do not fit the columns are refused.
        (Err(_), Columns::Known(_)) => return Ok(usual),
        (Err(problem), Columns::Unknown) => return Err(problem),
    };
    let trial = trials.iter().find(|trial| trial.dialect == found);
    // Apostrophes often are text.
    if let Some(quote) = found.quote.filter(|quote| *quote != b'"' && given.quote.is_none())
        && matches!(columns, Columns::Unknown)
        && trial.is_some_and(|trial| trial.hides_records)
    {
        let quote = char::from(quote).to_string().replace('\'', "''");
        return Err(format!(
            "a text between two {} has lines that look like records: say QUOTE '{quote}' if that is what they are, or else \
             QUOTE '\"'",
            quote.replace("''", "'")
        ));
    }
    match trial::other_quote(sample, found, options) {
        Some(quote) if given.quote.is_none() && matches!(columns, Columns::Unknown) => {
            Err(format!(
                "every field with {quote} stands between two of them: say QUOTE '{quote}' if that is what they are, or else \
                 QUOTE '{}'",
                found.quote.map_or('"', char::from)
            ))
        }
        _ => Ok(found),
    }
}

/// The best of the dialects that read every record with as many fields.
fn consistent(trials: &[Trial], usual: Dialect) -> Result<Dialect, String> {
    let rank = |trial: &&Trial| {
        (trial.odd, !trial.is_common, std::cmp::Reverse(trial.width), trial.dialect != usual)
    };
    let best_of = |is_single: bool| {
        let found = trials.iter().filter(|trial| trial.is_consistent());
        found.filter(|trial| is_single == (trial.width == 1)).min_by_key(rank)
    };
    let best = match (best_of(false), best_of(true)) {
        // A text of one column may well have a character of these in each line.
        (Some(best), Some(single)) if !best.is_common && single.all_typed => single,
        (Some(best), Some(single)) if single.odd == 0 && best.odd > 0 => single,
        (Some(best), _) | (None, Some(best)) => best,
        (None, None) => return Ok(usual),
    };
    let is_rival = |trial: &&Trial| {
        let is_other = trial.width > 1 || best.width == 1;
        trial.is_consistent()
            && is_other
            && trial.outcome != best.outcome
            && trial.odd <= 2 * best.odd
    };
    let is_single = best.width == 1 && best.all_typed;
    if let Some(rival) = trials.iter().find(is_rival).filter(|_| !is_single) {
        return Err(format!(
            "its first {} records have {} fields each with {}, and {} with {}: say which",
            best.records, best.width, best.dialect, rival.width, rival.dialect
        ));
    }
    if best.has_decimal_commas {
        return Err(
            "its lines have two numbers with DELIMITER ',', or one with DECIMAL_SEPARATOR ',' and DELIMITER ';': say which"
                .to_owned(),
        );
    }
    if best.width > 1 && !best.is_common {
        return Err(format!(
            "its first {} records have {} fields each with {}: say so, or DELIMITER ',' if it has one column",
            best.records, best.width, best.dialect
        ));
    }
    Ok(best.dialect)
}

/// The dialect that gives most records as many fields.
fn ragged(trials: &[Trial], given: &Given, usual: Dialect) -> Result<Dialect, String> {
    let common = trials.iter().filter(|trial| trial.may_be_ragged(usual));
    let rank = |trial: &&Trial| {
        (trial.fitting_share(), std::cmp::Reverse(trial.odd), trial.dialect == usual)
    };
    match common.max_by_key(rank) {
        None => match trials.iter().find(|trial| !trial.has_strays) {
            // One column.
            Some(trial) => Ok(trial.dialect),
            None if trials.is_empty() || given.line_end.is_some() => Ok(usual),
            None => Err("some of its lines end with CR, and others with LF: say the NEW_LINE, and the DELIMITER, QUOTE and \
                         ESCAPE"
                .to_owned()),
        },
        Some(best) if best.fitting * 2 >= best.records || given.delimiter.is_some() => {
            Ok(best.dialect)
        }
        Some(best) => Err(format!(
            "of its first {} records {} have {} fields with {}, and the others more or fewer: say the DELIMITER, and \
             the QUOTE and ESCAPE if it has others than \"",
            best.records, best.fitting, best.width, best.dialect
        )),
    }
}
