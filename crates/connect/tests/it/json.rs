//! JSON files as people have them.

use alluvium::Outcome;

use crate::workspace::Workspace;

#[test]
fn members_match_names_in_any_case_unless_two_differ_only_by_it() {
    let mut workspace = Workspace::new();
    workspace.file("t.jsonl", "{\"Name\": \"x\", \"ID\": 1}\n{\"name\": \"y\", \"id\": 2}\n");
    workspace.run("CREATE TABLE t (id INT, name TEXT); COPY t FROM 't.jsonl'");
    assert_eq!(workspace.query("SELECT * FROM t"), ["1|x", "2|y"]);
    assert_eq!(workspace.query("SELECT name, id FROM 't.jsonl'"), ["x|1", "y|2"]);
    workspace.file("both.jsonl", "{\"v\": 1, \"V\": 2}\n{\"V\": 3}\n");
    workspace.run("CREATE TABLE both (v INT); COPY both FROM 'both.jsonl'");
    assert_eq!(workspace.query("SELECT * FROM both"), ["1", "3"]);
}

#[test]
fn a_text_takes_any_value_as_its_text() {
    let mut workspace = Workspace::new();
    let lines = r#"{"id": 1, "v": 5.10, "p": {"k": 1, "t": "\"é"}}
{"id": 2, "v": "six", "p": [1, 2]}
{"id": 3, "v": true, "p": "text"}
{"id": 4, "v": null, "p": {"k": }}
"#;
    workspace.file("t.jsonl", lines);
    workspace.run("CREATE TABLE t (id INT, v TEXT, p TEXT)");
    assert_eq!(workspace.copied("COPY t FROM 't.jsonl'"), (3, 1));
    let rows = [r#"1|5.10|{"k": 1, "t": "\"é"}"#, "2|six|[1, 2]", "3|true|text"];
    assert_eq!(workspace.query("SELECT * FROM t"), rows);
    assert_eq!(workspace.query("SELECT json_extract(p, '$.k') FROM t WHERE id = 1"), ["1"]);
}

#[test]
fn what_was_looked_at_can_be_read() {
    let mut workspace = Workspace::new();
    let lines = r#"{"f": true, "n": 1, "o": {"a": 1}, "l": [1], "wei": 12345678901234567890123}
{"f": 1, "n": 2.0, "o": 7, "l": ["x"], "wei": 1}
{"f": "no", "n": "3", "o": [1], "l": [], "wei": 2}
"#;
    workspace.file("t.jsonl", lines);
    workspace.run("CREATE TABLE t FROM 't.jsonl'");
    let rows = ["1|2.0|7|[x]|1", "no|3|[1]|[]|2", "true|1|{\"a\": 1}|[1]|12345678901234567890123"];
    assert_eq!(workspace.query("SELECT * FROM t"), rows);
}

#[test]
fn a_number_is_no_time() {
    let mut workspace = Workspace::new();
    workspace
        .file("t.jsonl", "{\"t\": 1700000000}\n{\"t\": \"2024-02-29 10:30\"}\n{\"d\": 20240229}\n");
    workspace.run("CREATE TABLE t (t TIMESTAMP, d DATE)");
    assert_eq!(workspace.copied("COPY t FROM 't.jsonl'"), (1, 2));
    assert_eq!(workspace.query("SELECT t FROM t"), ["2024-02-29T10:30:00"]);
}

#[test]
fn objects_need_no_lines_of_their_own() {
    let mut workspace = Workspace::new();
    workspace.file("pretty.json", "{\n \"a\": 1\n}\n{\n \"a\": 2\n}\n");
    assert_eq!(workspace.query("SELECT * FROM 'pretty.json'"), ["1", "2"]);
    workspace.file("line.json", "{\"a\":1}{\"a\":2}\n");
    assert_eq!(workspace.query("SELECT * FROM 'line.json'"), ["1", "2"]);
}

#[test]
fn members_that_come_late_are_told() {
    let mut workspace = Workspace::new();
    let lines = "{\"a\": 1}\n".repeat(20_480) + "{\"a\": 2, \"b\": 3}\n{\"A\": 4, \"b\": 5}\n";
    workspace.file("t.jsonl", lines);
    let Outcome::Copied { rows, messages, .. } = workspace.run("CREATE TABLE t FROM 't.jsonl'")
    else {
        panic!("nothing was copied");
    };
    assert_eq!(rows, 20_482);
    let message = "2 objects from here on have a member \"b\", which is no column: none of the first objects has it; \
                   SAMPLE -1 looks at all for columns, NEW_MEMBERS 'pass' passes over it";
    assert_eq!(messages.len(), 1);
    assert_eq!((messages[0].line, messages[0].message.as_str()), (20_481, message));
    let problem = workspace.problem("SELECT COUNT(*) FROM 't.jsonl'");
    assert_eq!(problem, format!("t.jsonl:20481: {message}"));
    workspace.run("CREATE TABLE u FROM 't.jsonl' (SAMPLE -1)");
    assert_eq!(workspace.query("SELECT SUM(b) FROM u"), ["8"]);
}
