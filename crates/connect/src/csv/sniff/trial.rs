//! A sample as one dialect reads it.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;

use super::Columns;
use super::cell::{Look, look};
use super::hypotheses::COMMON;
use super::sample::Sample;
use crate::csv::dialect::{Dialect, LineEnd};
use crate::csv::header;
use crate::csv::options::Options;
use crate::csv::record::{Reading, Record, Records};

/// Characters that are around fields here and there.
const OTHER_QUOTES: &[u8] = b"`~^*|%$@!&#+=";

/// A sample as one dialect reads it.
pub struct Trial {
    pub dialect: Dialect,
    /// Whether its delimiter is one that is detected.
    pub is_common: bool,
    /// How many records there are, and how many of them have `width` fields.
    pub records: usize,
    pub fitting: usize,
    /// How many fields a record has to have, or most records have.
    pub width: usize,
    /// How many records have fields that no writer would have written so.
    pub odd: usize,
    /// Whether every record after the first is one typed value.
    pub all_typed: bool,
    /// Equal if all fields are.
    pub outcome: u64,
    /// Whether it reads what it would not have written.
    is_broken: bool,
    /// Whether ends of lines of the other kind are in fields without quotes.
    pub has_strays: bool,
    /// Whether every record may be one number with a decimal comma.
    pub has_decimal_commas: bool,
    /// Whether fields have quotes that they do not need, where others have none.
    has_needless_quotes: bool,
    /// Whether a field in quotes has lines that would be records of as many fields without them.
    pub hides_records: bool,
}

impl Trial {
    pub fn new(dialect: Dialect, sample: &Sample, options: &Options, columns: Columns<'_>) -> Self {
        let is_common = COMMON.contains(&dialect.delimiter) || options.given.delimiter.is_some();
        let mut seen = Seen::default();
        let mut width = None;
        let mut is_first = true;
        // A file that cannot be read fails when it is.
        let _ = each(dialect, sample, options, &mut |record| {
            if let (true, Columns::Known(schema), Some(record)) = (is_first, columns, record)
                && options.headers != Some(false)
                && header::names(schema, &header::written(record), &options.passed).is_ok()
            {
                width = Some(record.len());
            }
            seen.see(record, &dialect, is_first);
            is_first = false;
            // Others have to be consistent to count.
            is_common || seen.widths.len() == 1 && !seen.is_broken
        });
        if let Columns::Known(schema) = columns {
            width.get_or_insert(schema.fields().len());
        }
        // The most frequent; of those, the first that occurs.
        let most = seen
            .widths
            .iter()
            .max_by_key(|(_, (count, first))| (*count, std::cmp::Reverse(*first)));
        let width = width.unwrap_or(most.map_or(0, |(width, _)| *width));
        Self {
            dialect,
            is_common,
            records: seen.records,
            fitting: seen.widths.get(&width).map_or(0, |(count, _)| *count),
            width,
            odd: seen.odd,
            all_typed: seen.records > 0 && seen.not_typed == 0,
            outcome: seen.outcome.finish(),
            is_broken: seen.is_broken,
            has_strays: seen.strays > escaped_strays(&dialect, sample),
            has_decimal_commas: width == 2
                && dialect.delimiter == b','
                && options.given.delimiter.is_none()
                && seen.fractions.len() == 1
                && !seen.fractions.contains(&Some(1))
                && !seen.fractions.contains(&None),
            has_needless_quotes: seen.has_needless_quotes(&dialect),
            hides_records: seen.hides_records,
        }
    }

    /// Whether all records have as many fields as they should.
    pub fn is_consistent(&self) -> bool {
        !self.is_broken
            && !self.has_strays
            && !self.has_needless_quotes
            && self.records > 0
            && self.fitting == self.records
    }

    /// Whether it may be the dialect of a file some of whose records are wrong.
    pub fn may_be_ragged(&self, usual: Dialect) -> bool {
        let is_quoted = self.dialect.quote.is_some() || usual.quote.is_none();
        let is_wrong = self.has_strays || self.has_needless_quotes;
        self.is_common && self.width > 1 && is_quoted && !is_wrong
    }

    /// Which share of the records fits, in thousandths.
    pub fn fitting_share(&self) -> usize {
        self.fitting * 1000 / self.records.max(1)
    }
}

/// Calls `see` with each whole record of a sample, or with none for one that is malformed, as long as it says so. Blank lines
/// are passed over.
fn each(
    dialect: Dialect,
    sample: &Sample,
    options: &Options,
    see: &mut dyn FnMut(Option<&Record>) -> bool,
) -> io::Result<()> {
    let mut records = Records::new(&sample.text[..], &dialect, options.skip)?;
    let mut record = Record::default();
    loop {
        let reading = records.read(&mut record)?;
        let is_cut = !sample.is_whole && records.input().is_empty();
        let goes_on = match reading {
            Reading::End => false,
            _ if is_cut => false,
            Reading::Malformed(_) => see(None),
            Reading::Record if record.is_blank() => true,
            Reading::Record => see(Some(&record)),
        };
        if !goes_on {
            return Ok(());
        }
    }
}

/// The end of lines of the other kind.
fn stray(dialect: &Dialect) -> u8 {
    match dialect.line_end {
        LineEnd::Feed => b'\r',
        LineEnd::Return => b'\n',
    }
}

/// How many of them are text because of an escape.
fn escaped_strays(dialect: &Dialect, sample: &Sample) -> usize {
    let Some(escape) = dialect.escape else { return 0 };
    sample.text.windows(2).filter(|pair| *pair == [escape, stray(dialect)]).count()
}

/// What was seen of the records.
#[derive(Default)]
struct Seen {
    records: usize,
    /// How many records have so many fields, and the first of them.
    widths: HashMap<usize, (usize, usize)>,
    odd: usize,
    not_typed: usize,
    outcome: DefaultHasher,
    is_broken: bool,
    /// How many ends of lines of the other kind are in fields without quotes.
    strays: usize,
    /// How many digits the last fields have; none if a record is anything but digits.
    fractions: HashSet<Option<usize>>,
    /// For each column how many fields have quotes that they do not need, and how many texts have none.
    quoted: Vec<(usize, usize)>,
    hides_records: bool,
}

impl Seen {
    fn see(&mut self, record: Option<&Record>, dialect: &Dialect, is_first: bool) {
        let number = self.records;
        self.records += 1;
        let Some(record) = record else {
            self.is_broken = true;
            return;
        };
        self.widths.entry(record.len()).or_insert((0, number)).0 += 1;
        let is_digits = |index: usize| {
            let field = record.field(index);
            !field.quoted
                && field.text.bytes().all(|byte| byte.is_ascii_digit())
                && !field.text.is_empty()
        };
        let digits = (0..record.len()).all(is_digits);
        let last = record.field(record.len() - 1).text.len();
        self.fractions.insert(digits.then_some(last));
        self.quoted.resize(self.quoted.len().max(record.len()), (0, 0));
        let stray = stray(dialect);
        let mut is_odd = false;
        for index in 0..record.len() {
            let field = record.field(index);
            (field.text, field.text.is_empty() && field.quoted).hash(&mut self.outcome);
            let look = match field.quoted {
                true => Look::Text,
                false => look(field.text),
            };
            is_odd |= look == Look::Odd;
            let delimiter = char::from(dialect.delimiter);
            let mut lines = field.text.split(char::from(dialect.line_end.byte()));
            // The first and the last are parts of others.
            lines.next_back();
            self.hides_records |= field.quoted
                && record.len() > 1
                && lines.skip(1).any(|line| line.matches(delimiter).count() + 1 == record.len());
            if !field.quoted {
                self.strays += field.text.bytes().filter(|byte| *byte == stray).count();
            }
            let special = |byte: u8| {
                byte == dialect.delimiter
                    || Some(byte) == dialect.quote
                    || matches!(byte, b'\r' | b'\n')
            };
            let needs = field.text.is_empty() || field.text.bytes().any(special);
            let (quoted, unquoted) = &mut self.quoted[index];
            *quoted += usize::from(field.quoted && !needs);
            *unquoted += usize::from(
                !is_first && !field.quoted && look != Look::Typed && look != Look::Empty,
            );
            if !is_first && (record.len() > 1 || !matches!(look, Look::Typed | Look::Empty)) {
                self.not_typed += 1;
            }
        }
        record.len().hash(&mut self.outcome);
        self.odd += usize::from(is_odd);
    }

    /// Whether some fields of a column have quotes that they do not need, and others have none: writers that quote with
    /// anything but `"` do not do so, and such quotes are text.
    fn has_needless_quotes(&self, dialect: &Dialect) -> bool {
        let mixed = |(quoted, unquoted): &(usize, usize)| *quoted > 0 && *unquoted > 0;
        !matches!(dialect.quote, None | Some(b'"')) && self.quoted.iter().any(mixed)
    }
}

/// A character that stands around all fields that have it, doubled inside: they may be its quotes.
pub fn other_quote(sample: &Sample, dialect: Dialect, options: &Options) -> Option<char> {
    let others = OTHER_QUOTES.iter().copied();
    let mut others: Vec<(u8, bool)> = others
        .filter(|&quote| {
            quote != dialect.delimiter && Some(quote) != dialect.comment && sample.has(quote)
        })
        .map(|quote| (quote, false))
        .collect();
    let _ = each(dialect, sample, options, &mut |record| {
        for index in 0..record.map_or(0, Record::len) {
            let Some(field) = record.map(|record| record.field(index)) else { continue };
            others.retain_mut(|(quote, is_around)| {
                let quote = char::from(*quote);
                if !field.text.contains(quote) {
                    return true;
                }
                let inside =
                    field.text.strip_prefix(quote).and_then(|text| text.strip_suffix(quote));
                let doubled = [quote, quote].iter().collect::<String>();
                *is_around = true;
                inside.is_some_and(|inside| !inside.replace(&doubled, "").contains(quote))
                    && !field.quoted
            });
        }
        !others.is_empty()
    });
    others.into_iter().find(|(_, is_around)| *is_around).map(|(quote, _)| char::from(quote))
}
