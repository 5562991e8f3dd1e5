//! The alerts and the dashboard of `docs/prometheus` name metrics and labels that there are.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

const DOCUMENT: &str = include_str!("../../../../../docs/reference/metrics.md");
const ALERTS: &str = include_str!("../../../../../docs/prometheus/alerts.yml");
const DASHBOARD: &str = include_str!("../../../../../docs/prometheus/dashboard.json");

/// The labels that Prometheus adds.
const ADDED: [&str; 2] = ["job", "instance"];

/// The labels of each metric that is documented, by the names that queries have for it.
fn documented() -> BTreeMap<String, BTreeSet<String>> {
    let mut all = BTreeMap::new();
    for line in DOCUMENT.lines().filter(|line| line.starts_with("| `alluvium_")) {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let words = |cell: &str| -> Vec<String> {
            cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
        };
        let (name, labels) = (words(cells[1]).remove(0), words(cells[3]));
        let labels: BTreeSet<String> = labels.into_iter().chain(ADDED.map(str::to_owned)).collect();
        if cells[2] == "histogram" {
            let of_bucket = labels.iter().cloned().chain(["le".to_owned()]).collect();
            all.insert(format!("{name}_bucket"), of_bucket);
            all.insert(format!("{name}_sum"), labels.clone());
            all.insert(format!("{name}_count"), labels);
        } else {
            all.insert(name, labels);
        }
    }
    all
}

/// The words of a query, with the place behind each of them. Texts between quotes are none.
fn words(query: &str) -> Vec<(&str, &str)> {
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == '$';
    let (mut words, mut rest) = (Vec::new(), query);
    while let Some(at) = rest.find(|letter| is_word(letter) || letter == '"') {
        rest = &rest[at..];
        if let Some(text) = rest.strip_prefix('"') {
            rest = text.split_once('"').expect("a text has an end").1;
            continue;
        }
        let (word, after) =
            rest.split_at(rest.find(|letter| !is_word(letter)).unwrap_or(rest.len()));
        words.push((word, after));
        rest = after;
    }
    words
}

/// The labels of a query's grouping and matching, such as `by (a, b)`.
fn grouped(query: &str) -> Vec<&str> {
    let lists = words(query).into_iter().filter_map(|(word, after)| {
        let list = after.trim_start().strip_prefix('(');
        list.filter(|_| ["by", "on", "ignoring", "without"].contains(&word))
    });
    lists
        .flat_map(|list| list.split(')').next().unwrap_or(list).split(',').map(str::trim))
        .collect()
}

/// The names between these, such as those of labels in a text that is filled in.
fn between<'a>(text: &'a str, begin: &str) -> Vec<&'a str> {
    let each = text.split(begin).skip(1);
    each.map(|rest| {
        rest.split(|letter: char| !letter.is_alphanumeric() && letter != '_').next().unwrap_or("")
    })
    .collect()
}

/// Adds what is wrong with a query, of whose result a text names these labels.
fn examine(query: &str, named: &[&str], wrong: &mut Vec<String>) {
    let documented = documented();
    let mut known = BTreeSet::new();
    for (name, after) in
        words(query).into_iter().filter(|(word, _)| word.starts_with("alluvium_") || *word == "up")
    {
        let labels = match (name, documented.get(name)) {
            ("up", _) => ADDED.map(str::to_owned).into(),
            (_, Some(labels)) => labels.clone(),
            (_, None) => {
                wrong.push(format!("no metric {name}: {query}"));
                continue;
            }
        };
        let selected = after.strip_prefix('{').and_then(|rest| Some(rest.split_once('}')?.0));
        for (label, _) in words(selected.unwrap_or("")) {
            if !labels.contains(label) {
                wrong.push(format!("no label {label} of {name}: {query}"));
            }
        }
        known.extend(labels);
    }
    if known.is_empty() {
        wrong.push(format!("no metric at all: {query}"));
    }
    for label in grouped(query).into_iter().chain(named.iter().copied()) {
        if !known.contains(label) {
            wrong.push(format!("no label {label}: {query}"));
        }
    }
}

#[test]
fn alerts_name_metrics_and_labels_that_there_are() {
    let mut wrong = Vec::new();
    let rules = ALERTS.split("- alert: ").skip(1);
    for rule in rules.clone() {
        let query = rule.lines().find_map(|line| line.trim_start().strip_prefix("expr: "));
        examine(query.expect("a query"), &between(rule, "$labels."), &mut wrong);
    }
    assert!(rules.count() > 20);
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn the_dashboard_names_metrics_and_labels_that_there_are() {
    let dashboard: Value = serde_json::from_str(DASHBOARD).expect("JSON");
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let (mut wrong, mut count) = (Vec::new(), 0);
    let mut ids = BTreeSet::new();
    for panel in list(&dashboard["panels"]) {
        assert!(ids.insert(panel["id"].to_string()), "two panels have one id: {}", panel["title"]);
        for target in list(&panel["targets"]) {
            count += 1;
            assert_eq!(target["datasource"]["uid"], "${datasource}", "{}", panel["title"]);
            let legend = text(&target["legendFormat"]);
            examine(&text(&target["expr"]), &between(&legend, "{{"), &mut wrong);
        }
    }
    for variable in list(&dashboard["templating"]["list"]) {
        if variable["type"] == "query" {
            count += 1;
            let query = text(&variable["query"]["query"]);
            let label = query.trim_end_matches(')').rsplit(", ").next().expect("a label");
            examine(&query, &[label], &mut wrong);
        }
    }
    assert!(count > 40);
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn what_is_wrong_is_found() {
    let mut wrong = Vec::new();
    examine("sum by (kind) (rate(alluvium_nothing_total[5m]))", &[], &mut wrong);
    examine("alluvium_relations{kind=\"x\", state=\"failed\"} > 0", &["state"], &mut wrong);
    examine("sum by (relation) (alluvium_disk_full)", &["path"], &mut wrong);
    examine(
        "alluvium_memory_bytes{kind=\"x\"} / ignoring (kind) alluvium_memory_budget_bytes",
        &["job"],
        &mut wrong,
    );
    let found: Vec<&str> = wrong.iter().filter_map(|it| Some(it.split_once(':')?.0)).collect();
    let expected = ["no metric alluvium_nothing_total", "no metric at all", "no label kind"];
    assert_eq!(found[..3], expected);
    assert_eq!(
        found[3..],
        ["no label kind of alluvium_relations", "no label relation", "no label path"]
    );
}
