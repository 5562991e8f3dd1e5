//! Files in folders `key=value`, their names as a column, and the columns of several files.

use std::fs;

use crate::workspace::Workspace;

/// A file in folders that are made.
fn put(workspace: &Workspace, name: &str, content: impl AsRef<[u8]>) {
    fs::create_dir_all(workspace.path(name).parent().unwrap()).unwrap();
    workspace.file(name, content);
}

#[test]
fn folders_are_columns_in_every_format() {
    let mut workspace = Workspace::new();
    for (format, one, other) in [
        ("csv", "v\n1\n".to_owned(), "v\n2\n".to_owned()),
        ("jsonl", "{\"v\": 1}\n".to_owned(), "{\"v\": 2}\n".to_owned()),
    ] {
        put(&workspace, &format!("{format}/year=2023/m=01/a.{format}"), one);
        put(&workspace, &format!("{format}/year=2024/m=x%2Fy/a.{format}"), other);
    }
    for year in ["2023/m=01", "2024/m=x%2Fy"] {
        put(&workspace, &format!("parquet/year={year}/none"), "");
        workspace.run(&format!(
            "COPY (SELECT v FROM 'csv/year={year}/a.csv') TO 'parquet/year={year}/a.parquet'"
        ));
    }
    for format in ["csv", "jsonl", "parquet"] {
        let pattern = format!("'{format}/*/*/a.{format}'");
        let all = workspace.query(&format!("SELECT * FROM {pattern}"));
        assert_eq!(all, ["1|2023|01", "2|2024|x/y"], "{format}");
        let described = workspace.query(&format!("DESCRIBE {pattern}"));
        assert!(described.iter().any(|line| line.starts_with("year|BIGINT|it is the key")));
        let filtered = format!("SELECT v, year + 1 FROM {pattern} WHERE m = 'x/y'");
        assert_eq!(workspace.query(&filtered), ["2|2025"], "{format}");
        assert_eq!(workspace.query(&format!("SELECT year FROM {pattern}")), ["2023", "2024"]);
        let off = format!("SELECT * FROM {pattern} (HIVE_PARTITIONING false)");
        assert_eq!(workspace.query(&off), ["1", "2"], "{format}");
        workspace.run(&format!("CREATE TABLE made_{format} FROM {pattern}"));
        let made = workspace.query(&format!("SELECT year, m, v FROM made_{format}"));
        assert_eq!(made, ["2023|01|1", "2024|x/y|2"], "{format}");
        workspace.run(&format!("CREATE TABLE {format} (m TEXT, v INT, year SMALLINT NOT NULL)"));
        assert_eq!(workspace.copied(&format!("COPY {format} FROM {pattern}")), (2, 0));
        let copied = workspace.query(&format!("SELECT * FROM {format}"));
        assert_eq!(copied, ["01|1|2023", "x/y|2|2024"], "{format}");
        workspace.run(&format!(
            "CREATE TABLE fed_{format} (year INT, v INT) WITH (connector = 'file', path = '{format}/*/*/a.{format}', \
             'materialized' = 'true')"
        ));
        let fed = workspace.query(&format!("SELECT * FROM fed_{format}"));
        assert_eq!(fed, ["2023|1", "2024|2"], "{format}");
    }
}

#[test]
fn only_files_whose_keys_match_a_filter_are_opened() {
    let mut workspace = Workspace::new();
    for (year, content) in [("2022", "v\n1\n"), ("2023", "v\n2\n"), ("2024", "v\n3\n")] {
        put(&workspace, &format!("d/year={year}/a.csv"), content);
    }
    // Nothing can read these.
    put(&workspace, "d/year=2025/a.csv", b"v\n\xFF\n");
    put(&workspace, "d/year=__HIVE_DEFAULT_PARTITION__/a.csv", b"v\n\xFF\n");
    assert!(workspace.problem("SELECT v FROM 'd/*/a.csv'").contains("the text is not UTF-8"));
    for (filter, expected) in [
        ("year = 2023", vec!["2"]),
        ("year BETWEEN 2022 AND 2023 AND v > 1", vec!["2"]),
        ("year IN (2022, 2024)", vec!["1", "3"]),
        ("year < 2023 OR year = 2024", vec!["1", "3"]),
        ("year + 1 = 2024", vec!["2"]),
        ("year > 3000", vec![]),
        ("filename LIKE '%2022%'", vec!["1"]),
    ] {
        let sql = format!("SELECT f.v FROM 'd/*/a.csv' (FILENAME) AS f WHERE {filter}");
        assert_eq!(workspace.query(&sql), expected, "{filter}");
    }
    let listed =
        "SELECT v FROM read_csv(['d/year=2022/a.csv', 'd/year=2025/*.csv']) WHERE year = 2022";
    assert_eq!(workspace.query(listed), ["1"]);
    let missing = "SELECT v FROM 'd/*/a.csv' WHERE year IS NULL";
    assert!(workspace.problem(missing).contains("the text is not UTF-8"));
}

#[test]
fn keys_have_types_that_hold_all_their_values() {
    let mut workspace = Workspace::new();
    let day = ["2024-02-29", "2024-03-01"];
    for (index, day) in day.into_iter().enumerate() {
        let mixed = ["1", "one"][index];
        put(
            &workspace,
            &format!("t/day={day}/k={mixed}/n=__HIVE_DEFAULT_PARTITION__/a.csv"),
            "v,K\n1,own\n",
        );
    }
    let pattern = "'t/*/*/*/a.csv'";
    let types: Vec<String> = workspace
        .query(&format!("DESCRIBE {pattern}"))
        .iter()
        .map(|line| line.split('|').take(2).collect::<Vec<_>>().join(" "))
        .collect();
    // The folder's value counts, in the place of the file's column.
    assert_eq!(types, ["K VARCHAR", "day DATE", "n VARCHAR", "v BIGINT"]);
    let all = workspace.query(&format!("SELECT * FROM {pattern}"));
    assert_eq!(all, ["1|1|2024-02-29|NULL", "1|one|2024-03-01|NULL"]);
    let typed = "SELECT day || 'x', n FROM read_csv('t/*/*/*/a.csv', hive_types = {'day': 'VARCHAR', 'n': 'INT'})";
    assert_eq!(workspace.query(typed), ["2024-02-29x|NULL", "2024-03-01x|NULL"]);
    let untyped = "SELECT day || 'x' FROM read_csv('t/*/*/*/a.csv', hive_types_autocast = false)";
    assert_eq!(workspace.query(untyped), ["2024-02-29x", "2024-03-01x"]);
    for (sql, problem) in [
        (
            "SELECT v FROM read_csv('t/*/*/*/a.csv', hive_types = {'k': 'INT'})",
            "\"one\" is not an INTEGER (column K), which its folder says",
        ),
        (
            "SELECT v FROM read_csv('t/*/*/*/a.csv', hive_types = {'x': 'INT'})",
            "which is the key of no folder",
        ),
    ] {
        let found = workspace.problem(sql);
        assert!(found.contains(problem), "{found}");
    }
    workspace.run("CREATE TABLE k (k INT, v INT)");
    let refused = workspace.problem(&format!("COPY k FROM {pattern}"));
    assert!(refused.contains("t/day=2024-03-01/k=one") && refused.contains("is not an INTEGER"));
    // Folders with other keys are no columns, but for who says that they are.
    put(&workspace, "t/other=1/k=1/n=1/a.csv", "v,K\n1,own\n");
    assert_eq!(workspace.query(&format!("SELECT DISTINCT k FROM {pattern}")), ["own"]);
    let problem = workspace.problem(&format!("SELECT k FROM {pattern} (HIVE_PARTITIONING true)"));
    assert!(problem.contains("have other keys"), "{problem}");
}

#[test]
fn the_name_of_the_file_is_a_column_if_it_is_asked_for() {
    let mut workspace = Workspace::new();
    workspace.file("a1.csv", "v\n1\n");
    workspace.file("a2.csv", "v\n2\n");
    let named = "SELECT * FROM read_csv('a*.csv', filename = true)";
    assert_eq!(workspace.query(named), ["1|a1.csv", "2|a2.csv"]);
    let renamed = "SELECT source FROM 'a*.csv' (FILENAME 'source') WHERE source = 'a2.csv'";
    assert_eq!(workspace.query(renamed), ["a2.csv"]);
    let problem = workspace.problem("SELECT * FROM 'a*.csv' (FILENAME 'V')");
    assert!(problem.contains("FILENAME gives a column \"V\", and \"a1.csv\" has one"), "{problem}");
    workspace.run("CREATE TABLE t (filename TEXT, v INT)");
    workspace.run("COPY t FROM 'a*.csv' (FILENAME true)");
    assert_eq!(workspace.query("SELECT * FROM t"), ["a1.csv|1", "a2.csv|2"]);
}

#[test]
fn columns_of_several_files_are_united_by_name() {
    let mut workspace = Workspace::new();
    workspace.file("a1.csv", "id,v\n1,2\n");
    workspace.file("a2.csv", "V;extra\n2,5;x\n");
    workspace.file("a3.csv", "w,id\ny,3\n");
    let all = "SELECT id, v, extra, w FROM read_csv('a*.csv', union_by_name = true)";
    assert_eq!(workspace.query(all), ["1|2|NULL|NULL", "3|NULL|NULL|y", "NULL|2,5|x|NULL"]);
    workspace.file("b1.jsonl", "{\"a\": 1}\n");
    workspace.file("b2.jsonl", "{\"a\": 1.5, \"b\": \"x\"}\n");
    let listed = "SELECT a, b FROM read_ndjson(['b1.jsonl', 'b2.jsonl'], union_by_name = true)";
    assert_eq!(workspace.query(listed), ["1.0|NULL", "1.5|x"]);
    workspace.run("COPY (SELECT 1 AS a) TO 'c1.parquet'");
    workspace.run("COPY (SELECT 2 AS b, 1.5 AS a) TO 'c2.parquet'");
    let rows = "SELECT a, b FROM 'c*.parquet' (UNION_BY_NAME)";
    assert_eq!(workspace.query(rows).len(), 2);
    workspace.run("CREATE TABLE t FROM 'c*.parquet' (UNION_BY_NAME)");
    assert_eq!(workspace.query("SELECT b FROM t"), ["2", "NULL"]);
}

#[test]
fn ten_thousand_files_are_read_in_their_order_and_pruned() {
    let mut workspace = Workspace::new();
    for k in 0..100 {
        let folder = workspace.path(&format!("k={k}"));
        fs::create_dir(&folder).unwrap();
        for file in 0..100 {
            fs::write(folder.join(format!("{file:02}.csv")), format!("v\n{}\n", k * 100 + file))
                .unwrap();
        }
    }
    let sums = "SELECT COUNT(*), SUM(v), SUM(k) FROM 'k=*/*.csv'";
    assert_eq!(workspace.query(sums), ["10000|49995000|495000"]);
    assert_eq!(workspace.query(&format!("{sums} WHERE k = 7")), ["100|74950|700"]);
}
