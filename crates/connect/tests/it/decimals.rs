//! A number is the same DECIMAL wherever it stands: in CSV, in JSON, in JSON in CSV, in a text that is cast.

use crate::workspace::Workspace;

/// Numbers, and their values as DECIMAL(10, 2).
fn numbers() -> Vec<(String, Option<&'static str>)> {
    let given = |text: &str, value| (text.to_owned(), value);
    vec![
        given("1.239", Some("1.24")),
        given("-0.005", Some("-0.01")),
        given("1e3", Some("1000.00")),
        given("1.5e-1", Some("0.15")),
        given("1e65539", None),
        given("12345678901", None),
        (format!("1{}", "0".repeat(255)), None),
        (format!("1{}", "7".repeat(256)), None),
        (format!("0.{}1", "0".repeat(300)), Some("0.00")),
        (format!("1.{}", "3".repeat(300)), Some("1.33")),
        ("9".repeat(1 << 20), None),
    ]
}

/// The values that there are, in the order of lines.
fn expected() -> Vec<String> {
    let mut values: Vec<_> =
        numbers().into_iter().filter_map(|(_, value)| Some(value?.to_owned())).collect();
    values.sort();
    values
}

#[test]
fn columns_of_files() {
    let mut workspace = Workspace::new();
    let lines = |line: &dyn Fn(&str) -> String| -> String {
        numbers().iter().map(|(text, _)| line(text) + "\n").collect()
    };
    workspace.file("numbers.csv", lines(&|text| text.to_owned()));
    workspace.file("numbers.json", lines(&|text| format!("{{\"d\": {text}}}")));
    workspace.file("texts.json", lines(&|text| format!("{{\"d\": \"{text}\"}}")));
    for file in ["numbers.csv", "numbers.json", "texts.json"] {
        workspace.run("CREATE TABLE t (d DECIMAL(10, 2))");
        let refused = numbers().len() - expected().len();
        let (rows, refusals) = workspace.copied(&format!("COPY t FROM '{file}'"));
        assert_eq!((rows as usize, refusals as usize), (expected().len(), refused), "{file}");
        assert_eq!(workspace.query("SELECT * FROM t"), expected(), "{file}");
        workspace.run("DROP TABLE t");
    }
}

#[test]
fn nested_values_of_files() {
    let mut workspace = Workspace::new();
    let object = |text: &str| {
        format!("{{\"d\": {text}, \"list\": [{text}], \"map\": {{\"k\": {text}}}, \"s\": \"x\"}}")
    };
    let mut json = String::new();
    let mut csv = String::new();
    for (text, _) in numbers() {
        json.push_str(&format!("{{\"v\": {}, \"n\": 1}}\n", object(&text)));
        csv.push_str(&format!("\"{}\",1\n", object(&text).replace('"', "\"\"")));
    }
    workspace.file("nested.json", json);
    workspace.file("nested.csv", csv);
    for file in ["nested.csv", "nested.json"] {
        workspace.run(
            "CREATE TABLE t (
                v STRUCT<d DECIMAL(10, 2), list DECIMAL(10, 2)[], map MAP<VARCHAR, DECIMAL(10, 2)>, s VARCHAR>,
                n INT
            )",
        );
        let (rows, _) = workspace.copied(&format!("COPY t FROM '{file}'"));
        assert_eq!(rows as usize, expected().len(), "{file}");
        for value in ["v['d']", "v['list'][1]", "v['map']['k']"] {
            assert_eq!(workspace.query(&format!("SELECT {value} FROM t")), expected(), "{file}");
        }
        workspace.run("DROP TABLE t");
    }
}

#[test]
fn a_number_is_a_text_beside_a_decimal_as_well() {
    let mut workspace = Workspace::new();
    workspace.file("rows.json", "{\"d\": 1.5, \"s\": 2}\n{\"d\": 2.5, \"s\": \"x\"}\n");
    workspace.run("CREATE TABLE t (d DECIMAL(10, 2), s VARCHAR)");
    assert_eq!(workspace.copied("COPY t FROM 'rows.json'"), (2, 0));
    assert_eq!(workspace.query("SELECT * FROM t"), ["1.50|2", "2.50|x"]);
}

#[test]
fn casts() {
    let mut workspace = Workspace::new();
    workspace.run("CREATE TABLE texts (s VARCHAR)");
    for (text, _) in numbers() {
        workspace.run(&format!("INSERT INTO texts VALUES ('{text}')"));
    }
    workspace.run(
        "CREATE MATERIALIZED VIEW v AS
            SELECT TRY_CAST(s AS DECIMAL(10, 2)) AS d, TRY_CAST([s] AS DECIMAL(10, 2)[])[1] AS e FROM texts",
    );
    workspace.run("CREATE MATERIALIZED VIEW strict AS SELECT s::DECIMAL(10, 2) AS d FROM texts");
    for value in ["d", "e"] {
        let values = format!("SELECT {value} FROM v WHERE {value} IS NOT NULL");
        assert_eq!(workspace.query(&values), expected());
    }
    assert_eq!(workspace.query("SELECT d FROM strict"), expected());
    let errors = workspace.query("SELECT DISTINCT view FROM alluvium.errors");
    assert_eq!(errors, ["strict"]);
    let problem =
        workspace.problem("SELECT CAST(s AS DECIMAL(10, 2)) FROM texts WHERE s LIKE '999%'");
    let shown = "9".repeat(40);
    assert!(problem.contains(&format!("\"{shown}\"… is not a DECIMAL(10, 2)")), "{problem}");
}
