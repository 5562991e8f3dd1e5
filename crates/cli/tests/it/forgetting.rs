//! The guide to state that grows prints what the program prints.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::binary::binary;

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// The blocks of a language in the guide.
fn blocks<'a>(guide: &'a str, language: &str) -> Vec<&'a str> {
    let start = format!("```{language}\n");
    guide.split(&*start).skip(1).filter_map(|rest| Some(rest.split_once("```")?.0)).collect()
}

/// A line with a mark for numbers, times, and what depends on how far merges have come.
fn line(text: &str) -> Option<String> {
    let is_varying = |word: &str| {
        let bare = word.trim_matches(['(', ',', ':']);
        let digits = bare.bytes().filter(u8::is_ascii_digit).count();
        let is_fingerprint = bare.len() == 8 && bare.bytes().all(|it| it.is_ascii_hexdigit());
        is_fingerprint || digits > 0 && bare.bytes().all(|it| b"0123456789-:T".contains(&it))
    };
    if text.starts_with('+') || text.trim_start().starts_with("about ") || text == "…" {
        return None;
    }
    let words = text.split_whitespace().map(|word| if is_varying(word) { "#" } else { word });
    Some(words.collect::<Vec<_>>().join(" "))
}

/// Asserts that a program prints the lines of a text of the guide, in order.
fn assert_prints(program: &str, expected: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.sql");
    let docs = root().join("docs").canonicalize().unwrap();
    fs::write(&file, program.replace("'docs/", &format!("'{}/", docs.display()))).unwrap();
    let run = Command::new(binary()).arg("run").arg(&file).output().unwrap();
    let (text, errors) =
        (String::from_utf8(run.stdout).unwrap(), String::from_utf8(run.stderr).unwrap());
    assert!(run.status.success() && errors.is_empty(), "{errors}");
    let printed: Vec<String> = text.lines().filter_map(line).collect();
    let mut rest = printed.iter();
    for expected in expected.lines().filter_map(line) {
        assert!(
            rest.any(|line| *line == expected),
            "the guide has, and the program does not print: {expected}\n{text}"
        );
    }
    text
}

#[test]
fn the_guide_to_state_that_grows_prints_what_the_program_prints() {
    let guide = fs::read_to_string(root().join("docs/guide/forgetting.md")).unwrap();
    let (sql, texts) = (blocks(&guide, "sql"), blocks(&guide, "text"));
    let [program, explain, lateness, tables, bounded, everything] = sql[..] else {
        panic!("the guide has other blocks of SQL: {}", sql.len());
    };
    let [before, explained, late, after] = texts[..] else {
        panic!("the guide has other texts: {}", texts.len());
    };
    let day = |day: u32| {
        format!(
            "INSERT INTO flights SELECT carrier, tailnum, origin, dep_delay, time_hour
             FROM recorded WHERE day = {day};\n"
        )
    };
    let days = |from: u32, to: u32| (from..=to).map(day).collect::<String>();
    let look =
        "SELECT view, SUM(rows) AS rows, SUM(memory_bytes) AS bytes FROM alluvium.arrangements
                WHERE view <> 'recorded' GROUP BY view ORDER BY view;\n";
    let whole = |program: &str, rest: &str| {
        format!("{program}{}{look}{}{look}{rest}", days(1, 12), days(13, 24))
    };
    assert_prints(&whole(program, explain), &format!("{before}{explained}"));

    let with_lateness = program.replace("    time_hour TIMESTAMP\n", lateness);
    let rest = format!("{tables}{explain}");
    let text = assert_prints(&whole(&with_lateness, &rest), late);
    assert!(text.contains("| flights | 0 "), "no row is late:\n{text}");

    let with_band = with_lateness.replace("WHERE b.time_hour > a.time_hour;\n", bounded);
    assert_ne!(with_band, with_lateness);
    assert_prints(&whole(&with_band, &format!("{rest}{everything}")), after);
}
