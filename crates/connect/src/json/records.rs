//! A file cut into JSON objects.
//!
//! Objects are found by their brackets alone, so that each stands for itself: whatever is wrong inside of one
//! cannot reach into the next. On lines, each line is an object; in an array, and one after the other over several lines, an
//! object ends where its bracket is closed.

use std::borrow::Cow;
use std::io::{self, BufRead, Read};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use alluvium::Refusal;

use super::brackets::{Brackets, Member};
use crate::input::Text;

/// The longest object that is read, in bytes.
const LONGEST: u64 = 16 << 20;

/// How deep objects may nest, brackets in brackets: the decoder recurses.
const DEEPEST: usize = 128;

/// How many values an object may have, with those inside of others: each takes many times its text when it is decoded, and
/// while it becomes a row.
const MOST_VALUES: usize = 500_000;

/// Objects of a file, with their brackets in balance.
#[derive(Default)]
pub struct Batch {
    /// Their text, one after the other.
    text: Vec<u8>,
    ends: Vec<usize>,
    lines: Vec<u64>,
    /// The members of all of them, and where those of each end.
    members: Vec<Member>,
    member_ends: Vec<usize>,
}

/// A text in place of another one in a batch.
pub struct Edit {
    pub place: Range<usize>,
    pub text: Arc<[u8]>,
}

impl Batch {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// The line on which one begins.
    pub fn line(&self, index: usize) -> u64 {
        self.lines[index]
    }

    /// The text of some of them.
    pub fn text(&self, range: Range<usize>) -> &[u8] {
        let start = range.start.checked_sub(1).map_or(0, |before| self.ends[before]);
        let end = range.end.checked_sub(1).map_or(0, |last| self.ends[last]);
        &self.text[start..end.max(start)]
    }

    /// The members of one of them; of malformed text, those before the problem.
    pub fn members(&self, index: usize) -> &[Member] {
        let start = index.checked_sub(1).map_or(0, |before| self.member_ends[before]);
        &self.members[start..self.member_ends[index]]
    }

    /// Where the text of one of them begins.
    pub fn start(&self, index: usize) -> usize {
        index.checked_sub(1).map_or(0, |before| self.ends[before])
    }

    /// Puts texts in place of others, which are in order. Members are not where they were after that.
    pub fn edit(&mut self, edits: &[Edit]) {
        if edits.is_empty() {
            return;
        }
        let mut text = Vec::with_capacity(self.text.len());
        let (mut copied, mut next) = (0, edits.iter().peekable());
        for end in &mut self.ends {
            while let Some(edit) = next.next_if(|edit| edit.place.end <= *end) {
                text.extend_from_slice(&self.text[copied..edit.place.start]);
                text.extend_from_slice(&edit.text);
                copied = edit.place.end;
            }
            text.extend_from_slice(&self.text[copied..*end]);
            copied = *end;
            *end = text.len();
        }
        self.text = text;
    }

    /// Adds a text that has to be one object, with blanks around it or not. Fails if it is something else, without a reason,
    /// or if it is too much of an object.
    #[cfg(feature = "kafka")]
    pub fn add(&mut self, text: &[u8], line: u64) -> Result<(), Option<&'static str>> {
        let text = text.trim_ascii();
        if text.len() as u64 > LONGEST {
            return Err(Some("the JSON is longer than 16 MiB"));
        }
        let mut brackets = Brackets::default();
        if brackets.pass(text) != Some(text.len()) {
            return Err(None);
        }
        match found(&brackets, text, line, self) {
            Found::Malformed(_, problem) => Err(Some(problem)),
            Found::Object | Found::End => Ok(()),
        }
    }

    fn push(&mut self, object: &[u8], line: u64, members: &[Member]) {
        self.text.extend_from_slice(object);
        self.text.push(b'\n');
        self.ends.push(self.text.len());
        self.lines.push(line);
        self.members.extend_from_slice(members);
        self.member_ends.push(self.members.len());
    }
}

/// The name of a member, from its text in quotes; none if it is no JSON.
pub fn name(quoted: &[u8]) -> Option<Cow<'_, str>> {
    let inside = quoted.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    match inside.contains(&b'\\') {
        true => serde_json::from_slice(quoted).ok().map(Cow::Owned),
        false => str::from_utf8(inside).ok().map(Cow::Borrowed),
    }
}

/// The objects of a file.
pub struct Records {
    input: Text,
    layout: Layout,
    /// The current line: its number, its text, and how much of it has been read.
    line: u64,
    raw: Vec<u8>,
    at: usize,
    /// The bytes of the lines before it.
    passed: u64,
    /// How many bytes and whole lines come before the end of the last object that was read.
    behind: (u64, u64),
    brackets: Brackets,
}

/// How objects stand in a file.
#[derive(Clone, Copy, PartialEq)]
enum Layout {
    /// Each on a line.
    Lines,
    /// One after the other.
    Sequence,
    /// In an array, and where in it reading is.
    Array(Place),
}

/// Where in an array reading is.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    /// Before the first object, or the end.
    Start,
    /// Before an object.
    Item,
    /// After an object.
    Separator,
    /// After the array.
    End,
}

impl Records {
    /// Reads from the start of a file, past its byte order mark if it has one. Whether objects may take several lines without
    /// an array around them is for the format to say.
    pub fn new(mut input: Text, may_be_sequence: bool) -> io::Result<Self> {
        const MARK: &[u8] = b"\xEF\xBB\xBF";
        let mut passed = 0;
        if input.fill_buf()?.starts_with(MARK) {
            input.consume(MARK.len());
            passed = MARK.len() as u64;
        }
        let (raw, behind) = (Vec::new(), (passed, 0));
        let layout = Layout::Lines;
        let brackets = Brackets::default();
        let mut records = Self { input, layout, line: 0, raw, at: 0, passed, behind, brackets };
        match records.skip_blanks()? {
            Some(b'[') => {
                records.at += 1;
                records.layout = Layout::Array(Place::Start);
            }
            Some(b'{') if may_be_sequence && records.is_sequence() => {
                records.layout = Layout::Sequence
            }
            _ => {}
        }
        Ok(records)
    }

    /// Whether each line is an object.
    pub fn has_lines(&self) -> bool {
        self.layout == Layout::Lines
    }

    /// Whether there was nothing but blanks when reading began.
    pub fn is_blank(&self) -> bool {
        self.raw.is_empty()
    }

    /// Whether the first line shows that an object may take several, or several objects one.
    fn is_sequence(&self) -> bool {
        let line = self.raw[self.at..].trim_ascii_end();
        let mut brackets = Brackets::default();
        match brackets.pass(line) {
            Some(end) => line[end..].trim_ascii_start().starts_with(b"{"),
            // A line that was cut off ends anywhere.
            None => {
                let goes_on = matches!(line.last(), Some(b'{' | b'[' | b','));
                brackets.depth > 0 && !brackets.in_string && goes_on
            }
        }
    }

    /// How many bytes and whole lines come before the end of the last object that was read.
    pub fn place(&self) -> (u64, u64) {
        self.behind
    }

    /// The objects of the same file in `input`, before which so many bytes and whole lines come, and the last one of them.
    pub fn behind(&self, input: Text, (offset, lines): (u64, u64)) -> Self {
        Self {
            input,
            layout: match self.layout {
                Layout::Array(_) => Layout::Array(Place::Separator),
                layout => layout,
            },
            line: lines,
            raw: Vec::new(),
            at: 0,
            passed: offset,
            behind: (offset, lines),
            brackets: Brackets::default(),
        }
    }

    /// Up to `most` objects of `bytes` bytes, give or take one, and the text between them that is refused; `None` at the
    /// end of the file.
    pub fn read(
        &mut self,
        most: usize,
        bytes: usize,
        file: &Path,
    ) -> io::Result<Option<(Batch, Vec<Refusal>)>> {
        let mut batch = Batch::default();
        let mut refused = Vec::new();
        let mut count = 0;
        self.input.begin_portion();
        while count == 0 || count < most && batch.text.len() < bytes {
            // Another object may be on the same line.
            if count > 0 && self.at == self.raw.len() && !self.input.goes_on()? {
                break;
            }
            count += 1;
            let more = match self.layout {
                Layout::Lines => self.read_line_object(&mut batch)?,
                Layout::Sequence => self.read_next_object(&mut batch)?,
                Layout::Array(place) => self.read_item(place, &mut batch)?,
            };
            let is_whole = self.at == self.raw.len();
            match more {
                Found::End => break,
                _ if is_whole => self.behind = (self.passed + self.at as u64, self.line),
                _ => self.behind = (self.passed + self.at as u64, self.line - 1),
            }
            match more {
                Found::Object | Found::End => {}
                Found::Malformed(line, message) => {
                    refused.push(Refusal::new(file, line, message));
                }
            }
        }
        Ok((batch.len() + refused.len() > 0).then_some((batch, refused)))
    }

    /// The object on the rest of the line.
    fn read_line_object(&mut self, batch: &mut Batch) -> io::Result<Found> {
        if self.skip_blanks()?.is_none() {
            return Ok(Found::End);
        }
        let text = self.raw[self.at..].trim_ascii_end();
        self.at = self.raw.len();
        self.brackets.begin();
        Ok(match self.brackets.pass(text) {
            Some(end) if end == text.len() => found(&self.brackets, text, self.line, batch),
            _ => Found::Malformed(self.line, "the line is not one JSON object"),
        })
    }

    /// The object after others.
    fn read_next_object(&mut self, batch: &mut Batch) -> io::Result<Found> {
        match self.skip_blanks()? {
            None => Ok(Found::End),
            Some(b'{') => self.read_object(batch),
            Some(_) => {
                let message = format!("line {}: there is text between objects", self.line);
                Err(io::Error::new(io::ErrorKind::InvalidData, message))
            }
        }
    }

    fn read_item(&mut self, place: Place, batch: &mut Batch) -> io::Result<Found> {
        let broken = |line, what| {
            let message = format!("line {line}: {what}");
            Err(io::Error::new(io::ErrorKind::InvalidData, message))
        };
        let Some(byte) = self.skip_blanks()? else {
            return match place {
                Place::End => Ok(Found::End),
                _ => broken(self.line, "the array of objects is not closed"),
            };
        };
        let next = match (place, byte) {
            (Place::Start | Place::Separator, b']') => Place::End,
            (Place::Separator, b',') => Place::Item,
            (Place::Start | Place::Item, b'{') => return self.read_object(batch),
            (Place::Start | Place::Item, _) => {
                return broken(self.line, "an array holds something that is not an object");
            }
            (Place::Separator, _) => {
                return broken(self.line, "objects are not separated by commas");
            }
            (Place::End, _) => {
                return broken(self.line, "there is text behind the array of objects");
            }
        };
        self.layout = Layout::Array(next);
        self.at += 1;
        self.read_item(next, batch)
    }

    /// An object that begins on the current line, and may end on another.
    fn read_object(&mut self, batch: &mut Batch) -> io::Result<Found> {
        let line = self.line;
        let mut object = Vec::new();
        self.brackets.begin();
        loop {
            let text = &self.raw[self.at..];
            if let Some(end) = self.brackets.pass(text) {
                object.extend_from_slice(&text[..end]);
                self.at += end;
                if let Layout::Array(place) = &mut self.layout {
                    *place = Place::Separator;
                }
                return Ok(found(&self.brackets, &object, line, batch));
            }
            object.extend_from_slice(text);
            if object.len() as u64 > LONGEST || !self.read_line()? {
                let message = format!("line {line}: an object is not closed");
                return Err(io::Error::new(io::ErrorKind::InvalidData, message));
            }
        }
    }

    /// Goes to the next byte that is not blank, and looks at it; `None` at the end of the file.
    fn skip_blanks(&mut self) -> io::Result<Option<u8>> {
        loop {
            let rest = &self.raw[self.at..];
            if let Some(blanks) = rest.iter().position(|byte| !byte.is_ascii_whitespace()) {
                self.at += blanks;
                return Ok(Some(self.raw[self.at]));
            }
            if !self.read_line()? {
                return Ok(None);
            }
        }
    }

    /// Reads the next line; `false` at the end of the file.
    fn read_line(&mut self) -> io::Result<bool> {
        self.passed += self.raw.len() as u64;
        self.raw.clear();
        self.at = 0;
        let read = (&mut self.input).take(LONGEST).read_until(b'\n', &mut self.raw)?;
        if read as u64 == LONGEST {
            let message = format!("line {} is longer than 16 MiB", self.line + 1);
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        self.line += u64::from(read > 0);
        Ok(read > 0)
    }
}

/// Adds an object to a batch, unless it nests too deeply.
fn found(brackets: &Brackets, object: &[u8], line: u64, batch: &mut Batch) -> Found {
    if brackets.deepest > DEEPEST {
        return Found::Malformed(line, "the JSON nests more than 128 levels deep");
    }
    if brackets.values > MOST_VALUES {
        return Found::Malformed(line, "the JSON has more than 500,000 values");
    }
    batch.push(object, line, &brackets.members);
    Found::Object
}

/// The next part of a file.
enum Found {
    Object,
    /// Something else, on this line.
    Malformed(u64, &'static str),
    End,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The objects of a text and the problems, with their lines.
    fn read(text: &'static str) -> Vec<(u64, String)> {
        read_as(text, false)
    }

    fn read_as(text: &'static str, may_be_sequence: bool) -> Vec<(u64, String)> {
        let text = Text::Whole(Box::new(text.as_bytes()));
        let mut records = Records::new(text, may_be_sequence).unwrap();
        let mut all = Vec::new();
        loop {
            match records.read(2, usize::MAX, Path::new("f")) {
                Ok(None) => return all,
                Err(error) => {
                    all.push((0, error.to_string()));
                    return all;
                }
                Ok(Some((batch, refused))) => {
                    let text = |index| str::from_utf8(batch.text(index..index + 1)).unwrap();
                    let text = |index| (batch.line(index), text(index).trim().to_owned());
                    all.extend((0..batch.len()).map(text));
                    all.extend(refused.into_iter().map(|refusal| (refusal.line, refusal.message)));
                }
            }
        }
    }

    fn found<const N: usize>(expected: [(u64, &str); N]) -> Vec<(u64, String)> {
        expected.map(|(line, text)| (line, text.to_owned())).to_vec()
    }

    #[test]
    fn a_line_is_an_object() {
        let text = "\u{FEFF}{\"a\": \"}\\\"\"}\r\n\n  {\"b\": [{}]}  \n{}";
        assert_eq!(read(text), found([(1, "{\"a\": \"}\\\"\"}"), (3, "{\"b\": [{}]}"), (4, "{}")]));
    }

    #[test]
    fn what_is_no_object_is_refused_and_reaches_no_further_than_its_line() {
        let wrong = "the line is not one JSON object";
        let text = "{}\n{\"a\":\n1}\n{} {}\n\"x\"\n{\"a\n{]\n[1]\n{}\n";
        let lines = [2, 3, 4, 5, 6, 7, 8];
        let mut expected = found([(1, "{}")]);
        expected.extend(lines.map(|line| (line, wrong.to_owned())));
        expected.push((9, "{}".to_owned()));
        let mut read = read(text);
        read.sort();
        assert_eq!(read, expected);
    }

    #[test]
    fn objects_may_take_several_lines_and_share_one() {
        let text = "{\n \"a\": {\n}\n}\n{ \"a\": 2\n} {}\n";
        let expected = [(1, "{\n \"a\": {\n}\n}"), (5, "{ \"a\": 2\n}"), (6, "{}")];
        assert_eq!(read_as(text, true), found(expected));
        assert_eq!(
            read_as("{\"a\":1}{\"a\":2}\n", true),
            found([(1, "{\"a\":1}"), (1, "{\"a\":2}")])
        );
        let problem = (0, "line 3: there is text between objects".to_owned());
        assert_eq!(read_as("{\n}\nx\n", true).last(), Some(&problem));
        let problem = (0, "line 3: an object is not closed".to_owned());
        assert_eq!(read_as("{\n}\n{\n\"a\": 1", true).last(), Some(&problem));
    }

    #[test]
    fn members_are_those_of_the_object_itself() {
        let text = r#" {"a": {"x": "y:"}, "b\u00e9" : ["p", {"q": 1}], "c":"d", "c":1} "#;
        let mut records = Records::new(Text::Whole(Box::new(text.as_bytes())), true).unwrap();
        let (batch, _) = records.read(1, usize::MAX, Path::new("f")).unwrap().unwrap();
        let object = batch.text(0..1);
        let members = batch.members(0).iter().map(|member| {
            let value = str::from_utf8(&object[member.value()]).unwrap().trim();
            (name(&object[member.name()]).unwrap().into_owned(), value.to_owned())
        });
        let expected = [
            ("a", r#"{"x": "y:"}"#),
            ("b\u{e9}", r#"["p", {"q": 1}]"#),
            ("c", r#""d""#),
            ("c", "1"),
        ];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(members.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn an_object_that_nests_too_deeply_is_refused_and_reaches_no_further() {
        let nested = |depth: usize| {
            let (open, close) = ("[".repeat(depth - 1), "]".repeat(depth - 1));
            format!("{{\"a\": {open}{close}}}")
        };
        let refusal = (2, "the JSON nests more than 128 levels deep".to_owned());
        for depth in [129, 100_000] {
            let lines = format!("{}\n{}\n{{}}\n", nested(128), nested(depth));
            let array = format!("[{},\n{},\n{{}}]", nested(128), nested(depth));
            for text in [lines, array] {
                let mut read = read(text.leak());
                read.sort();
                let expected = [(1, nested(128)), refusal.clone(), (3, "{}".to_owned())];
                assert_eq!(read, expected, "{depth}");
            }
        }
    }

    #[test]
    fn an_object_of_too_many_values_is_refused_and_reaches_no_further() {
        let object = |item: &str, values: usize| {
            let items = item.repeat(values);
            format!("{{\"a\": [{}]}}", items.trim_end_matches(','))
        };
        let refusal = (2, "the JSON has more than 500,000 values".to_owned());
        // The object and the array have brackets of their own, and the last item has no comma after it.
        for (item, most) in
            [("1,", 499_999), ("\",[{\",", 499_999), ("[],", 250_000), ("{},", 250_000)]
        {
            let (large, too_large) = (object(item, most - 1), object(item, most + 1));
            let lines = format!("{large}\n{too_large}\n{{}}\n");
            let mut read = read(lines.leak());
            read.sort();
            assert_eq!(read, [(1, large), refusal.clone(), (3, "{}".to_owned())], "{item}");
        }
    }

    #[test]
    fn an_array_may_be_laid_out_in_any_way() {
        let text = "[{\"a\": 1}, {\n \"b\": [1,\n 2]}\n,{}]\n\n";
        assert_eq!(read(text), found([(1, "{\"a\": 1}"), (1, "{\n \"b\": [1,\n 2]}"), (4, "{}")]));
        assert_eq!(read(" [ ] "), []);
    }

    #[test]
    fn an_array_that_is_broken_says_where() {
        for (text, problem) in [
            ("[{}\n{}]", "line 2: objects are not separated by commas"),
            ("[{},\n1]", "line 2: an array holds something that is not an object"),
            ("[{},\n", "line 1: the array of objects is not closed"),
            ("[\n{\"a\": \"]}\n", "line 2: an object is not closed"),
            ("[]\n{}", "line 2: there is text behind the array of objects"),
        ] {
            assert_eq!(read(text).last().unwrap().1, problem, "{text}");
        }
    }
}
