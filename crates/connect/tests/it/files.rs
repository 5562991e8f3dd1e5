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
