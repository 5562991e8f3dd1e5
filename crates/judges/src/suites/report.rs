//! What became of the queries of files.

use std::collections::BTreeMap;
use std::fmt;

/// What became of a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The view was equal to DataFusion's answer after every transaction.
    Passed,
    /// The engine refuses the view, for this reason.
    Refused(String),
    /// The view was wrong: the first difference.
    Wrong(String),
    /// An expression of the view failed for a row, so the view has other rows than DataFusion, which fails as a whole.
    Failing,
    /// DataFusion's answer depends on the order of the rows.
    Ambiguous,
    /// It reads no table, or DataFusion has no answer.
    NotJudged,
}

/// The verdicts on some queries.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The place and the text of each query, and its verdict.
    queries: Vec<(String, String, Verdict)>,
}

impl Report {
    pub(super) fn add(&mut self, place: String, query: String, verdict: Verdict) {
        self.queries.push((place, query, verdict));
    }

    /// The number of queries with such a verdict.
    pub fn count(&self, is: impl Fn(&Verdict) -> bool) -> usize {
        self.queries.iter().filter(|(_, _, verdict)| is(verdict)).count()
    }

    /// The place, the text and the difference of each query whose view was wrong.
    pub fn wrong(&self) -> impl Iterator<Item = (&str, &str, &str)> {
        self.queries.iter().filter_map(|(place, query, verdict)| match verdict {
            Verdict::Wrong(difference) => Some((&**place, &**query, &**difference)),
            _ => None,
        })
    }

    /// The place, the text and the reason of each query that is refused.
    pub fn refused(&self) -> impl Iterator<Item = (&str, &str, &str)> {
        self.queries.iter().filter_map(|(place, query, verdict)| match verdict {
            Verdict::Refused(reason) => Some((&**place, &**query, &**reason)),
            _ => None,
        })
    }

    /// Why views were refused, without names and values, and how often; the most frequent reason comes first.
    pub fn reasons(&self) -> Vec<(String, usize)> {
        let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
        for (_, _, reason) in self.refused() {
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
        let failing = self.count(|verdict| *verdict == Verdict::Failing);
        let ambiguous = self.count(|verdict| *verdict == Verdict::Ambiguous);
        let share = match passed + refused + wrong + failing {
            0 => String::new(),
            all => format!("{} %", (100 * passed) / all),
        };
        format!("| {name} | {passed} | {refused} | {wrong} | {failing} | {ambiguous} | {share} |")
    }

    /// The heading of the table of such lines.
    pub fn heading() -> &'static str {
        "| | passed | refused | wrong | failing rows | ambiguous | passed of those judged |\n|---|---|---|---|---|---|---|"
    }
}

impl std::ops::AddAssign for Report {
    fn add_assign(&mut self, other: Self) {
        self.queries.extend(other.queries);
    }
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, query, verdict) in &self.queries {
            writeln!(formatter, "{place}: {verdict:?}: {query}")?;
        }
        Ok(())
    }
}

/// The first line of a message, with … for what is quoted and 0 for numbers.
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
        report.add(String::new(), String::new(), Verdict::Refused(reason));
    }
    assert_eq!(report.reasons(), [("0:0: there is no function …".to_owned(), 2)]);
}
