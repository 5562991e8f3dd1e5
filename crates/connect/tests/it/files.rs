//! Files that queries read, with options.

use alluvium::FileAccess;

use crate::workspace::Workspace;

#[test]
fn a_query_may_say_how_a_file_is_read() {
    let mut workspace = Workspace::new();
    workspace.file("a.csv", "a^b\n1^x\n");
    let answer = workspace.query("SELECT * FROM 'a.csv' (DELIMITER '^') AS f WHERE f.a = 1");
    assert_eq!(answer, ["1|x"]);
    workspace.file("b.dat", "a;b\n1;x\nNA;y\n-;z\n");
    let read = "read_csv('b.dat', delim = ';', nullstr = ['NA', '-'], header = true)";
    assert_eq!(workspace.query(&format!("SELECT SUM(a), COUNT(*) FROM {read}")), ["1|3"]);
    workspace.file("c.csv", "a,b\n2,w\n");
    let both = "SELECT b FROM read_csv(['c.csv', 'd*.csv']) ORDER BY b";
    workspace.file("d1.csv", "b,a\nv,3\n");
    workspace.file("d2.csv", "a,b\n4,u\n");
    assert_eq!(workspace.query(both), ["u", "v", "w"]);
    workspace.file("e.json", "{\"a\": 1}");
    assert_eq!(workspace.query("SELECT e.a, c.b FROM read_json('e.json') e, 'c.csv' c"), ["1|w"]);
    workspace.run("COPY (SELECT a FROM 'c.csv' (HEADERS true)) TO 'f.parquet'");
    assert_eq!(workspace.query("SELECT * FROM read_parquet('f.parquet')"), ["2"]);
    workspace.run("CREATE TABLE t FROM 'b.dat' (FORMAT csv, NULL_VALUE ('NA', '-'))");
    assert_eq!(workspace.query("SELECT COUNT(a) FROM t"), ["1"]);
}

#[test]
fn rows_that_cannot_be_read_are_passed_over_or_end_a_statement_as_it_says() {
    let mut workspace = Workspace::new();
    workspace.file("a.csv", "a,b\n1,x\n2\n3,z\n");
    let problem = "a.csv:3: there are 1 fields instead of 2";
    assert_eq!(workspace.problem("SELECT * FROM 'a.csv'"), problem);
    let passing = "SELECT a FROM 'a.csv' (IGNORE_ERRORS true)";
    assert_eq!(workspace.query(passing), ["1", "3"]);
    workspace.run("CREATE TABLE t (a INT, b TEXT)");
    assert_eq!(workspace.problem("COPY t FROM 'a.csv' (IGNORE_ERRORS false)"), problem);
    assert_eq!(workspace.copied("COPY t FROM 'a.csv' (IGNORE_ERRORS)"), (2, 1));
}

#[test]
fn describe_tells_how_a_file_is_read_and_why() {
    let mut workspace = Workspace::new();
    workspace.file("a.csv", "id;v\n1;x\n2;5\n3;6\n4;7\n");
    let with = "FORMAT csv, HEADERS 'true', DELIMITER ';', QUOTE '\"', ESCAPE '\"', COMMENT '', NEW_LINE '\\n'";
    let described = [
        format!("id|BIGINT|NULL|{with}"),
        format!("v|VARCHAR|1 of 4 values is not a BIGINT, the first \"x\"|{with}"),
    ];
    assert_eq!(workspace.query("DESCRIBE 'a.csv'"), described);
    assert_eq!(workspace.query("DESCRIBE 'a.csv' (DELIMITER ';')").len(), 2);
    let read = format!("SELECT v FROM 'a.csv' ({}) WHERE id = 2", with.replace("FORMAT csv, ", ""));
    assert_eq!(workspace.query(&read), ["5"]);
}

#[test]
fn no_statement_reads_a_file_that_its_session_may_not() {
    let mut workspace = Workspace::new();
    workspace.file("a.csv", "a\n1\n");
    workspace.session.set_file_access(FileAccess::Nothing);
    for sql in [
        "SELECT * FROM 'a.csv' (DELIMITER ',')",
        "SELECT * FROM read_csv('a.csv')",
        "SELECT * FROM read_csv(['a.csv'])",
        "DESCRIBE 'a.csv'",
        "DESCRIBE 'a.csv' (HEADERS true)",
    ] {
        assert_eq!(workspace.problem(sql), "this session may not read the file \"a.csv\"", "{sql}");
    }
}

#[test]
fn columns_of_a_csv_file_may_be_given() {
    let mut workspace = Workspace::new();
    workspace.file("a.csv", "1;01234;x\n2;00007;y\n");
    let columns = "columns = {'id': 'INTEGER', 'zip': 'VARCHAR', 'v': 'VARCHAR'}";
    let read = format!("read_csv('a.csv', {columns})");
    assert_eq!(workspace.query(&format!("SELECT zip, id FROM {read} WHERE id > 1")), ["00007|2"]);
    workspace.file("h.csv", "nr,plz,v\n1,01234,\n");
    workspace.run(&format!(
        "CREATE TABLE t FROM 'h.csv' (COLUMNS '{}')",
        r#"{"id": "INT", "zip": "TEXT", "v": "DECIMAL(5, 2)"}"#
    ));
    assert_eq!(workspace.columns("t"), ["id Int32", "zip Utf8", "v Decimal128(5, 2)"]);
    assert_eq!(workspace.query("SELECT * FROM t"), ["1|01234|NULL"]);
    workspace.file("g.csv", "ID,ZIP,V\nx,y,z\n");
    let texts = "columns = {'id': 'TEXT', 'zip': 'TEXT', 'v': 'TEXT'}";
    assert_eq!(workspace.query(&format!("SELECT * FROM read_csv('g.csv', {texts})")), ["x|y|z"]);
    let copied =
        "COPY t FROM 'a.csv' (DELIMITER ';', COLUMNS {'zip': 'INT', 'id': 'INT', 'v': 'INT'})";
    assert_eq!(workspace.copied(copied), (0, 2));
    for (options, problem) in [
        (
            "columns = {'id': 'INT'}, delim = ';'",
            "\"a.csv\" has 3 columns with DELIMITER ';', and COLUMNS 1",
        ),
        ("columns = {'id': 'NOTHING'}", "the type of \"id\" in COLUMNS"),
        (
            "columns = 'id'",
            "COLUMNS is an object of names and types, such as {\"id\": \"BIGINT\"}, not \"id\"",
        ),
    ] {
        let found = workspace.problem(&format!("SELECT * FROM read_csv('a.csv', {options})"));
        assert!(found.contains(problem), "{found}");
    }
}

#[test]
fn a_connector_ends_at_a_row_that_cannot_be_read_if_it_is_to() {
    for (option, rows, problem) in
        [("true", "3", None), ("false", "0", Some("a.csv:3: \"x\" is not an INTEGER (column a)"))]
    {
        let mut workspace = Workspace::new();
        workspace.file("a.csv", "a\n1\nx\n2\n3\n");
        workspace.run(&format!(
            "CREATE TABLE t (a INT) WITH (connector = 'file', path = 'a.csv', ignore_errors = '{option}', \
             'materialized' = 'true')"
        ));
        workspace.session.set_awaits_sources(false);
        workspace.run("START");
        let ended = workspace.engine.wait_for_sources();
        assert_eq!(ended.is_err(), problem.is_some());
        if let (Err(error), Some(problem)) = (ended, problem) {
            assert!(workspace.message(&error).ends_with(problem), "{error}");
        }
        assert_eq!(workspace.query("SELECT COUNT(*) FROM t"), [rows]);
    }
    let mut workspace = Workspace::new();
    let unknown = "CREATE TABLE t (a INT) WITH ('connectors' = '[{\"transport\": {\"name\": \"file_input\", \
                   \"config\": {\"path\": \"a.csv\"}}, \"format\": {\"name\": \"csv\", \"config\": {\"format\": \"json\"}}}]')";
    assert!(workspace.problem(unknown).contains("no option \"FORMAT\" for CSV"));
}

#[test]
fn describe_tells_why_columns_of_json_and_parquet_are_texts() {
    let mut workspace = Workspace::new();
    workspace.file(
        "a.jsonl",
        "{\"a\": 1, \"b\": null, \"c\": \"x\", \"d\": {}}\n{\"a\": \"y\", \"c\": \"z\"}\n{\"a\": 2, \"l\": [1, [2]]}\n",
    );
    let remarks = "a|VARCHAR|there are values of several types: 1 text, 2 numbers|FORMAT jsonl, NEW_MEMBERS 'tell'";
    let described = workspace.query("DESCRIBE 'a.jsonl'");
    assert_eq!(described[0], remarks);
    let of = |column: &str| {
        let line = described.iter().find(|line| line.starts_with(column)).unwrap();
        line.split('|').nth(2).unwrap().to_owned()
    };
    assert_eq!(of("b"), "there is no value");
    assert_eq!(of("c"), "NULL");
    assert_eq!(of("d"), "its objects have no members");
    assert_eq!(of("l"), "its 1 list have values of several types inside");
}
