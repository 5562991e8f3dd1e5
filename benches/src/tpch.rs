//! TPC-H: its tables, its queries as views, and its rows.

use std::fmt::Display;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use tpchgen::csv::{
    CustomerCsv, LineItemCsv, NationCsv, OrderCsv, PartCsv, PartSuppCsv, RegionCsv, SupplierCsv,
};
use tpchgen::generators::{
    CustomerGenerator, LineItemGenerator, NationGenerator, OrderGenerator, PartGenerator,
    PartSuppGenerator, RegionGenerator, SupplierGenerator,
};

use crate::Result;

/// The tables, with connectors to files in the folder that stands for `{folder}`.
pub const TABLES: &str = include_str!("../tpch/tables.sql");

/// The 22 queries as views `q1` to `q22`.
pub const VIEWS: &str = include_str!("../tpch/views.sql");

/// The names of the tables, which those of their files follow.
pub const NAMES: [&str; 8] =
    ["region", "nation", "part", "supplier", "partsupp", "customer", "orders", "lineitem"];

/// The definitions of the tables without connectors.
pub fn tables_alone() -> String {
    let definitions = TABLES.split_inclusive(";\n");
    definitions
        .filter_map(|text| text.split_once("WITH ("))
        .fold(String::new(), |all, (definition, _)| all + definition.trim_end() + ";\n")
}

/// Writes the tables as CSV without headers.
///
/// # Errors
/// If the files cannot be written.
pub fn generate(folder: &Path, scale: f64) -> Result<()> {
    let file = |name: &str| folder.join(format!("{name}.csv"));
    write(&file("region"), RegionGenerator::new(scale, 1, 1).iter().map(RegionCsv::new))?;
    write(&file("nation"), NationGenerator::new(scale, 1, 1).iter().map(NationCsv::new))?;
    write(&file("part"), PartGenerator::new(scale, 1, 1).iter().map(PartCsv::new))?;
    write(&file("supplier"), SupplierGenerator::new(scale, 1, 1).iter().map(SupplierCsv::new))?;
    write(&file("partsupp"), PartSuppGenerator::new(scale, 1, 1).iter().map(PartSuppCsv::new))?;
    write(&file("customer"), CustomerGenerator::new(scale, 1, 1).iter().map(CustomerCsv::new))?;
    write(&file("orders"), OrderGenerator::new(scale, 1, 1).iter().map(OrderCsv::new))?;
    write(&file("lineitem"), LineItemGenerator::new(scale, 1, 1).iter().map(LineItemCsv::new))
}

fn write(path: &Path, rows: impl Iterator<Item = impl Display>) -> Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    for row in rows {
        writeln!(file, "{row}")?;
    }
    Ok(file.flush()?)
}

#[test]
fn tables_alone_have_no_connectors() {
    let tables = tables_alone();
    assert_eq!(tables.matches("CREATE TABLE").count(), NAMES.len());
    assert!(!tables.contains("connectors") && tables.ends_with(");\n"), "{tables}");
}
