//! Verdicts on the queries of files.

use std::collections::BTreeMap;
use std::fmt;

/// The verdict on a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The view was equal to DataFusion's answer after every transaction.
    Passed,
    /// The engine refuses the view, for this reason.
    Refused(String),
    /// The view was wrong: the first difference.
    Wrong(String),
    /// The view was always what the engine's own query returned, and that is another answer than DataFusion's, for this
    /// reason.
    Deviates(&'static str),
    /// An expression of the view failed for a row, with this message, so the view has other rows than DataFusion, which
    /// fails as a whole.
    Failing(String),
    /// DataFusion's answer depends on the order of the rows.
    Ambiguous,
    /// It reads no table, or DataFusion has no answer.
    NotJudged,
}

/// A query that was judged.
#[derive(Clone, Debug)]
pub(super) struct Judged {
    pub(super) place: String,
    pub(super) query: String,
    pub(super) verdict: Verdict,
    /// The most rows that it had after a transaction.
    pub(super) rows: usize,
}

/// The verdicts on some queries.
#[derive(Clone, Debug, Default)]
pub struct Report {
    queries: Vec<Judged>,
}

impl Report {
    pub(super) fn add(&mut self, judged: Judged) {
        self.queries.push(judged);
    }

    /// The number of queries with such a verdict.
    pub fn count(&self, is: impl Fn(&Verdict) -> bool) -> usize {
        self.queries.iter().filter(|judged| is(&judged.verdict)).count()
    }

    /// The place and the text of each query that passed without ever having a row.
    pub fn empty(&self) -> impl Iterator<Item = (&str, &str)> {
        let is_empty = |judged: &&Judged| judged.verdict == Verdict::Passed && judged.rows == 0;
        self.queries.iter().filter(is_empty).map(|judged| (&*judged.place, &*judged.query))
    }

    /// The place, the text and the difference of each query whose view was wrong.
    pub fn wrong(&self) -> impl Iterator<Item = (&str, &str, &str)> {
        self.queries.iter().filter_map(|judged| match &judged.verdict {
            Verdict::Wrong(difference) => Some((&*judged.place, &*judged.query, &**difference)),
            _ => None,
        })
    }

    /// The place, the text and the reason of each query that is refused.
    pub fn refused(&self) -> impl Iterator<Item = (&str, &str, &str)> {
        self.queries.iter().filter_map(|judged| match &judged.verdict {
            Verdict::Refused(reason) => Some((&*judged.place, &*judged.query, &**reason)),
            _ => None,
        })
    }

    /// Why answers differ on purpose, and how often.
    pub fn deviations(&self) -> BTreeMap<&'static str, usize> {
        let mut reasons = BTreeMap::new();
        for judged in &self.queries {
            if let Verdict::Deviates(reason) = judged.verdict {
                *reasons.entry(reason).or_default() += 1;
            }
        }
        reasons
    }

    /// Why views were refused, without names and values, and how often; the most frequent reason comes first.
    pub fn reasons(&self) -> Vec<(String, usize)> {
        let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
        for (.., reason) in self.refused() {
            *reasons.entry(without_names(reason)).or_default() += 1;
        }
        let mut reasons: Vec<_> = reasons.into_iter().collect();
        reasons.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        reasons
    }

    /// The counts as a line of a Markdown table.
    pub fn line(&self, name: &str) -> String {
        let passed = self.count(|verdict| *verdict == Verdict::Passed);
        let refused = self.refused().count();
        let wrong = self.wrong().count();
        let deviating = self.count(|verdict| matches!(verdict, Verdict::Deviates(_)));
        let failing = self.count(|verdict| matches!(verdict, Verdict::Failing(_)));
        let ambiguous = self.count(|verdict| *verdict == Verdict::Ambiguous);
        let share = match passed + refused + deviating + wrong + failing {
            0 => String::new(),
            all => format!("{} %", (100 * passed) / all),
        };
        let empty = self.empty().count();
        format!(
            "| {name} | {passed} | {empty} | {refused} | {deviating} | {wrong} | {failing} | {ambiguous} | {share} |"
        )
    }

    /// The verdict on each query, as lines of a Markdown table.
    pub fn lines(&self) -> String {
        let mut lines = String::new();
        for Judged { place, verdict, rows, .. } in &self.queries {
            let (result, why) = match verdict {
                Verdict::Passed => ("passed", ""),
                Verdict::Refused(reason) => ("refused", &**reason),
                Verdict::Wrong(difference) => ("wrong", &**difference),
                Verdict::Deviates(reason) => ("deviates", *reason),
                Verdict::Failing(message) => ("failing rows", &**message),
                Verdict::Ambiguous => ("ambiguous", ""),
                Verdict::NotJudged => ("not judged", ""),
            };
            let why = why.replace('\n', " ").replace('|', "\\|");
            lines += &format!("| {place} | {result} | {rows} | {why} |\n");
        }
        lines
    }

    /// The heading of the table of such lines.
    pub fn heading() -> &'static str {
        "| | passed | without ever a row | refused | deviating | wrong | failing rows | ambiguous | passed of those judged |\n|---|---|---|---|---|---|---|---|---|"
    }
}

impl std::ops::AddAssign for Report {
    fn add_assign(&mut self, other: Self) {
        self.queries.extend(other.queries);
    }
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Judged { place, query, verdict, .. } in &self.queries {
            writeln!(formatter, "{place}: {verdict:?}: {query}")?;
        }
        Ok(())
    }
}

/// The first line of a message, with … for quoted text and 0 for numbers.
fn without_names(message: &str) -> String {
    let line = message.lines().next().unwrap_or_default();
    let mut text = String::with_capacity(line.len());
    let mut quote = None;
    for letter in line.chars() {
        match quote {
            Some(open) if letter == open => {
                quote = None;
                text.push('…');
            }
            Some(_) => {}
            None if letter == '"' || letter == '`' => quote = Some(letter),
            None if letter.is_ascii_digit() => {
                if !text.ends_with('0') {
                    text.push('0');
                }
            }
            None => text.push(letter),
        }
    }
    text
}

#[test]
fn reasons_are_counted_without_names() {
    let mut report = Report::default();
    for (name, position) in [("a", 7), ("b", 12)] {
        let reason = format!("1:{position}: there is no function \"{name}\"\nSELECT");
        let (place, query) = (String::new(), String::new());
        report.add(Judged { place, query, verdict: Verdict::Refused(reason), rows: 0 });
    }
    assert_eq!(report.reasons(), [("0:0: there is no function …".to_owned(), 2)]);
}
