//! The dialects of CSV files are detected, or it is said that they cannot be told.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use alluvium::{Result, Source, SourceRequest};
use alluvium_connect::Csv;
use arrow::array::AsArray;
use arrow::datatypes::{DataType, Field, Schema};
use fastrand::Rng;

use crate::workspace::Workspace;

/// A dialect as programs have them.
#[derive(Debug)]
struct Dialect {
    delimiter: char,
    quote: char,
    /// The character before a quote; a quote is doubled if there is none.
    escape: Option<char>,
    quoting: Quoting,
    line_end: &'static str,
    prefix: String,
}

/// Which fields have quotes. These are what Python's `csv` has.
#[derive(Debug, PartialEq)]
enum Quoting {
    Minimal,
    All,
    NotNumbers,
    Never,
}

/// A table of texts, and whether its first line are names.
#[derive(Debug)]
struct Table {
    has_header: bool,
    /// Whether a column has values of another type than text.
    is_typed: bool,
    rows: Vec<Vec<String>>,
}

impl Table {
    fn random(rng: &mut Rng) -> Self {
        let width = rng.usize(1..=6);
        let kinds: Vec<usize> = (0..width).map(|_| rng.usize(..KINDS)).collect();
        let has_header = rng.usize(..4) > 0;
        let mut rows = Vec::new();
        if has_header {
            let names = ["id", "name", "Unit price", "created_at", "note", "city", "x"];
            rows.push((0..width).map(|index| names[index].to_owned()).collect());
        }
        for _ in 0..rng.usize(2..=40) {
            rows.push(kinds.iter().map(|kind| field(rng, *kind)).collect());
        }
        Self { has_header, is_typed: kinds.iter().any(|kind| *kind < TYPED), rows }
    }
}

const KINDS: usize = 8;
const TYPED: usize = 3;

fn field(rng: &mut Rng, kind: usize) -> String {
    let words = |rng: &mut Rng, separators: &[&str]| {
        let all = ["river", "Ada", "it's", "naïve", "5\"", "x_1", "C:\\new", "a/b", "N°7", "end."];
        let count = rng.usize(1..5);
        let word = |_| {
            let separator = separators[rng.usize(..separators.len())];
            format!("{}{separator}", all[rng.usize(..all.len())])
        };
        let text: String = (0..count).map(word).collect();
        text.trim().to_owned()
    };
    match kind {
        0 => rng.i32(-500..5000).to_string(),
        1 => format!("20{:02}-{:02}-{:02}", rng.u8(10..30), rng.u8(1..=12), rng.u8(1..=28)),
        2 => format!("2024-05-{:02} {:02}:{:02}:00", rng.u8(1..=28), rng.u8(..24), rng.u8(..60)),
        3 => format!("{},{:02}", rng.u32(..100), rng.u8(..100)),
        4 => ["red", "green", "blue", ""][rng.usize(..4)].to_owned(),
        5 => words(rng, &[" "]),
        6 => words(rng, &[" ", ", ", "; ", " | ", ": ", "\n", " \"said\" ", "' "]),
        _ => {
            let all: Vec<char> = "ab1 ,;|\t:'\"\\#~\n".chars().collect();
            (0..rng.usize(1..9)).map(|_| all[rng.usize(..all.len())]).collect()
        }
    }
}

impl Dialect {
    fn random(rng: &mut Rng) -> Self {
        let common = [',', ';', '\t', '|'];
        let delimiter = match rng.usize(..4) {
            0 => [':', '~', '^', ' ', '#', '\u{1}'][rng.usize(..6)],
            _ => common[rng.usize(..4)],
        };
        let quote = ['"', '"', '"', '\''][rng.usize(..4)];
        let quoting = match rng.usize(..6) {
            0 => Quoting::All,
            1 => Quoting::NotNumbers,
            2 => Quoting::Never,
            _ => Quoting::Minimal,
        };
        let escape = (quoting == Quoting::Never || rng.usize(..5) == 0).then_some('\\');
        let line_end = ["\n", "\n", "\r\n", "\r"][rng.usize(..4)];
        let prefix = match rng.usize(..8) {
            0 => "\u{FEFF}".to_owned(),
            1 => format!("sep={delimiter}{line_end}"),
            _ => String::new(),
        };
        Self { delimiter, quote, escape, quoting, line_end, prefix }
    }

    /// The text of a table, as Python's `csv.writer` has it.
    fn write(&self, table: &Table) -> String {
        let mut text = self.prefix.clone();
        for row in &table.rows {
            for (index, field) in row.iter().enumerate() {
                if index > 0 {
                    text.push(self.delimiter);
                }
                self.write_field(field, row.len(), &mut text);
            }
            text.push_str(self.line_end);
        }
        text
    }

    fn write_field(&self, field: &str, width: usize, text: &mut String) {
        let is_quote = |char: char| char == self.quote || Some(char) == self.escape;
        let splits = |char: char| [self.delimiter, '\n', '\r'].contains(&char);
        let needs_quotes = field.contains(splits)
            || self.escape.is_none() && field.contains(self.quote)
            || field.is_empty() && width == 1;
        let quoted = match self.quoting {
            Quoting::Minimal => needs_quotes,
            Quoting::All => true,
            Quoting::NotNumbers => needs_quotes || field.parse::<f64>().is_err(),
            Quoting::Never => false,
        };
        if quoted {
            text.push(self.quote);
        }
        for char in field.chars() {
            if is_quote(char) {
                text.push(self.escape.unwrap_or(self.quote));
            } else if !quoted && splits(char) {
                text.extend(self.escape);
            }
            text.push(char);
        }
        if quoted {
            text.push(self.quote);
        }
    }
}

/// Whether there is a header, and the rows; or why one cannot be read.
type Told = std::result::Result<(bool, Vec<Vec<String>>), String>;

/// What a file has: its header, if it has one, and its rows; fails if one cannot be read.
fn read(path: &Path) -> Result<Told> {
    let inferred = Csv.infer(path, &[])?;
    let has_header = inferred.options.contains(&("HEADERS".to_owned(), "true".to_owned()));
    let names: Vec<String> =
        inferred.schema.fields().iter().map(|field| field.name().clone()).collect();
    let texts = names.iter().map(|name| Field::new(name, DataType::Utf8, true));
    let mut request = SourceRequest::new(path, Arc::new(Schema::new(texts.collect::<Vec<_>>())));
    request.options = inferred.options;
    let mut reader = Csv.open(&request)?;
    let mut rows = Vec::new();
    rows.extend(has_header.then_some(names));
    while let Some(portion) = reader.next()? {
        if let Some(refusal) = portion.refused.first() {
            return Ok(Err(refusal.to_string()));
        }
        for row in 0..portion.rows.num_rows() {
            let text = |column: &arrow::array::ArrayRef| {
                column
                    .as_string_opt::<i32>()
                    .unwrap()
                    .iter()
                    .nth(row)
                    .flatten()
                    .unwrap_or("")
                    .to_owned()
            };
            rows.push(portion.rows.columns().iter().map(text).collect());
        }
    }
    Ok(Ok((has_header, rows)))
}

/// How files of random dialects were read.
#[derive(Default)]
struct Verdicts {
    right: usize,
    /// Those that were said to be unclear, and those that were read wrong.
    told: Vec<String>,
    wrong: Vec<String>,
}

impl Verdicts {
    /// Reads a file of a table.
    fn see(&mut self, path: &Path, table: &Table, of: &str) {
        let (has_header, rows) = match read(path) {
            Ok(Ok(found)) => found,
            Ok(Err(refused)) => return self.told.push(format!("{of} {refused}")),
            Err(error) => return self.told.push(format!("{of} {error}")),
        };
        // A first line of nothing but texts may be a header or not.
        let is_first_right = has_header == table.has_header || !table.is_typed;
        let start = usize::from(has_header && !table.has_header);
        match rows[start..] == table.rows[start..] && is_first_right {
            true => self.right += 1,
            false => self.wrong.push(format!("{of} {table:?} {rows:?}")),
        }
    }

    /// Fails if one was read wrong, or fewer than so many right.
    fn check(&self, least: usize) {
        let Self { right, told, wrong } = self;
        if let Ok(report) = std::env::var("DIALECTS") {
            fs::write(report, format!("{}\n\n{}", told.join("\n"), wrong.join("\n\n"))).unwrap();
        }
        println!("{right} right, {} told, {} wrong", told.len(), wrong.len());
        assert!(
            wrong.is_empty(),
            "{right} right, {} told, wrong: {}",
            told.len(),
            wrong.join("\n")
        );
        assert!(*right >= least, "{right} right, {} told", told.len());
    }
}

#[test]
fn random_dialects_are_detected_or_it_is_said_that_they_cannot_be() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.csv");
    let mut verdicts = Verdicts::default();
    for seed in 0..2_000 {
        let mut rng = Rng::with_seed(seed);
        let (table, dialect) = (Table::random(&mut rng), Dialect::random(&mut rng));
        fs::write(&path, dialect.write(&table)).unwrap();
        verdicts.see(&path, &table, &format!("{seed} {dialect:?}"));
    }
    verdicts.check(1_001);
}

/// `.ci/long dialects` has Python write them (`tests/dialects.py`) to this folder.
#[test]
fn dialects_of_python_are_detected_or_it_is_said_that_they_cannot_be() {
    let Ok(folder) = std::env::var("ALLUVIUM_DIALECTS") else { return };
    let tables = fs::read_to_string(Path::new(&folder).join("tables.jsonl")).unwrap();
    let mut verdicts = Verdicts::default();
    for (number, line) in tables.lines().enumerate() {
        let written: serde_json::Value = serde_json::from_str(line).unwrap();
        let table = Table {
            has_header: written["has_header"].as_bool().unwrap(),
            is_typed: written["is_typed"].as_bool().unwrap(),
            rows: serde_json::from_value(written["rows"].clone()).unwrap(),
        };
        let path = Path::new(&folder).join(format!("{number}.csv"));
        verdicts.see(&path, &table, &format!("{number} {}", written["dialect"]));
    }
    verdicts.check(tables.lines().count() / 2);
}

#[test]
fn what_people_write_is_read() {
    let mut workspace = Workspace::new();
    let mut read = |name: &str, text: &str| {
        workspace.file(name, text);
        workspace.query(&format!("SELECT * FROM '{name}'"))
    };
    assert_eq!(read("semicolons.csv", "a;b\n1;2\n"), ["1|2"]);
    assert_eq!(read("excel.csv", "sep=;\r\nid;v\r\n1;2\r\n"), ["1|2"]);
    assert_eq!(read("mac.csv", "a,b\rone,1\rtwo,2\r"), ["one|1", "two|2"]);
    assert_eq!(read("tabs.tsv", "id\tv\n1\tx, y\n"), ["1|x, y"]);
    assert_eq!(read("pipes.psv", "id|v\n1|x\n"), ["1|x"]);
    assert_eq!(read("notes.txt", "id;v\n1;x\n"), ["1|x"]);
    assert_eq!(read("mysql.csv", "a,b\n1,\"say \\\"hi\\\"\"\n2,\"x\"\n"), ["1|say \"hi\"", "2|x"]);
    assert_eq!(read("twice.csv", "id,id,v\n1,2,3\n"), ["1|2|3"]);
    assert_eq!(read("comments.csv", "# made by hand\nid,v\n# more\n1,2\n"), ["1|2"]);
    assert_eq!(read("european.csv", "a;b\n1,5;x\n2,25;y\n"), ["1,5|x", "2,25|y"]);
    assert_eq!(read("rows.csv", "1,2\n3,4\n"), ["1|2", "3|4"]);
    assert_eq!(read("apostrophes.csv", "a,b\n'x, y','z'\n'it''s','w'\n"), ["it's|w", "x, y|z"]);
}

#[test]
fn a_file_that_no_dialect_explains_is_not_read_as_another_table() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.csv");
    for (text, problem) in [
        (
            "\u{feff}id;name;Unit price;created_at\rit's';Müller-Lüdenscheidt C:\\\\new 5\\\";\\;\n1b#:a;100 % x_1\rnaïve' Ada \\\"said\\\" 5\\\"' C:\\\\new;5\\\";#|\\\\\n\\;~;it's end.\r",
            "some of its lines end with CR",
        ),
        (
            "id;name;Unit price;created_at;note\n\\;|:\\\"a:;C:\\\\new x_1 naïve end.;2743;-735.555;2024-05-09 11:20:00\n#\t~\\\\~:\t;Ada 5\\\";-191;980.244;2024-05-11 23:56:00\n\\\nbb1;N°7;1560;-16.982;2024-05-01 22:23:00\n';C:\\\\new 5\\\";2093;808.386;2024-05-07 15:25:00\n|;river;3262;-671.525;2024-05-21 16:12:00\n\\\":b;100 % end.;2099;731.354;2024-05-03 08:45:00\n\\;#;river end. x_1;544;779.054;2024-05-08 07:36:00\n\\\",;river C:\\\\new Ada;3414;77.026;2024-05-05 22:07:00\n';end. naïve a/b;2280;636.336;2024-05-06 23:21:00\n\\\n\\\n|\\;~;naïve;1234;647.873;2024-05-22 00:30:00\n",
            "a text between two ' has lines that look like records",
        ),
        (
            "sep=,\rid,name,Unit price,created_at,note,city\rriver\nC:\\\\new\tnaïve,Müller-Lüdenscheidt end. it\\'s it\\'s,2010-06-25,-24.414, :1 #;,2027-06-17\r100 %\\' Ada\tAda\t100 % |,5\" Ada x_1 a/b,2028-04-06,-189.470,',b~,',2014-04-06\r",
            "some of its lines end with CR",
        ),
    ] {
        fs::write(&path, text).unwrap();
        let error = read(&path).unwrap_err().to_string();
        assert!(error.contains(problem), "{error}");
    }
}
