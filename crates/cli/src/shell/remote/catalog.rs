//! The relations of a server.

use std::collections::BTreeMap;

use alluvium::arrow::array::RecordBatch;
use alluvium::name::{spelled, written};
use alluvium_client::{Client, Result};

use super::super::backend::Listed;
use super::texts;

/// A schema and the name of a relation in it.
type Place = (String, String);

/// The tables and views that the role may see.
pub(super) async fn relations(client: &Client) -> Result<Vec<Listed>> {
    let rows = read(
        client,
        "SELECT schema, relation, name, kind, definition, comment FROM alluvium.relations WHERE kind <> 'index' ORDER BY name",
    )
    .await?;
    let [schemas, relations, names, kinds, definitions, comments] = columns(&rows);
    let mut places: BTreeMap<Place, usize> = BTreeMap::new();
    let mut listed = Vec::new();
    for row in 0..rows.num_rows() {
        places.insert((schemas[row].clone(), relations[row].clone()), row);
        listed.push(Listed {
            name: names[row].clone(),
            kind: kinds[row].clone(),
            columns: Vec::new(),
            reads: Vec::new(),
            statements: vec![definitions[row].clone()],
        });
    }
    let at = |schema: &String, relation: &String| {
        places.get(&(schema.clone(), relation.clone())).copied()
    };
    add_indexes(client, &mut listed, at).await?;
    for (row, comment) in comments.iter().enumerate().filter(|(_, comment)| !comment.is_empty()) {
        let kind = match kinds[row].as_str() {
            "table" => "TABLE",
            "materialized view" => "MATERIALIZED VIEW",
            _ => "VIEW",
        };
        let sql = format!("COMMENT ON {kind} {} IS {}", written(&names[row]), quoted(comment));
        listed[row].statements.push(sql);
    }
    add_columns(client, &mut listed, at).await?;
    let sql = "SELECT schema, relation, read_schema, read_relation FROM alluvium.dependencies";
    let rows = read(client, sql).await?;
    let [schemas, relations, read_schemas, read_relations] = columns(&rows);
    for row in 0..rows.num_rows() {
        let of = at(&schemas[row], &relations[row]);
        let read = at(&read_schemas[row], &read_relations[row]);
        if let (Some(of), Some(read)) = (of, read) {
            listed[of].reads.push(names[read].clone());
        }
    }
    Ok(listed)
}

async fn add_indexes(
    client: &Client,
    listed: &mut [Listed],
    at: impl Fn(&String, &String) -> Option<usize>,
) -> Result<()> {
    let sql = "SELECT i.schema, i.relation, r.definition FROM alluvium.indexes i
        JOIN alluvium.relations r ON r.kind = 'index' AND r.schema = i.schema AND r.relation = i.name
        WHERE r.definition LIKE 'CREATE %INDEX %'";
    let rows = read(client, sql).await?;
    let [schemas, relations, definitions] = columns(&rows);
    for (row, definition) in definitions.into_iter().enumerate() {
        if let Some(of) = at(&schemas[row], &relations[row]) {
            listed[of].statements.push(definition);
        }
    }
    Ok(())
}

/// Adds the columns, and the comments on them.
async fn add_columns(
    client: &Client,
    listed: &mut [Listed],
    at: impl Fn(&String, &String) -> Option<usize>,
) -> Result<()> {
    let sql = "SELECT schema, relation, name, comment FROM alluvium.columns ORDER BY schema, relation, position";
    let rows = read(client, sql).await?;
    let [schemas, relations, names, comments] = columns(&rows);
    for (row, name) in names.into_iter().enumerate() {
        let Some(of) = at(&schemas[row], &relations[row]) else { continue };
        if !comments[row].is_empty() {
            let (relation, text) = (written(&listed[of].name), quoted(&comments[row]));
            let sql = format!("COMMENT ON COLUMN {relation}.{} IS {text}", spelled(&name));
            listed[of].statements.push(sql);
        }
        listed[of].columns.push(name);
    }
    Ok(())
}

/// The rows of a query.
pub(super) async fn read(client: &Client, sql: &str) -> Result<RecordBatch> {
    client.query(sql, &[]).await?.collect().await
}

/// The texts of all columns.
pub(super) fn columns<const N: usize>(rows: &RecordBatch) -> [Vec<String>; N] {
    std::array::from_fn(|column| texts(rows, column))
}

/// A text as SQL writes it.
pub(super) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
