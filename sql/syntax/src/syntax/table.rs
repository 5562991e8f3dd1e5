//! CREATE TABLE.

use sqlparser::ast::{
    ColumnDef, ColumnOption, ColumnOptionDef, ConstraintCharacteristics, CreateTable,
    CreateTableOptions, ForeignKeyConstraint, HiveDistributionStyle, HiveFormat, Ident,
    IndexColumn, PrimaryKeyConstraint, Spanned, TableConstraint,
};
use sqlparser::tokenizer::Span;

use super::clause::{Clause, none_of, refuse};
use super::{check, data_type};
use crate::error::Result;

/// The clauses of a CREATE TABLE that nothing reads, with their names. Every field is in one of the two lists.
macro_rules! unused {
    ($create:ident, read: $($read:ident)*, unused: $($field:ident $name:literal)*) => {{
        let CreateTable { $($read: _,)* $($field,)* } = $create;
        [$(($field as &dyn Clause, $name),)*]
    }};
}

/// Refuses clauses that nothing reads.
fn check_clauses(create: &CreateTable) -> Result<()> {
    let unused = unused!(
        create,
        read: or_replace if_not_exists name columns constraints table_options hive_distribution hive_formats
            query,
        unused:
            temporary "CREATE TEMPORARY TABLE"
            external "CREATE EXTERNAL TABLE"
            dynamic "CREATE DYNAMIC TABLE"
            global "CREATE GLOBAL or LOCAL TABLE"
            transient "CREATE TRANSIENT TABLE"
            volatile "CREATE VOLATILE TABLE"
            iceberg "CREATE ICEBERG TABLE"
            snapshot "CREATE SNAPSHOT TABLE"
            file_format "STORED AS"
            location "LOCATION"
            without_rowid "WITHOUT ROWID"
            like "CREATE TABLE … LIKE"
            clone "CREATE TABLE … CLONE"
            version "CREATE TABLE as of another time"
            comment "COMMENT of a table"
            on_commit "ON COMMIT"
            on_cluster "ON CLUSTER"
            primary_key "PRIMARY KEY behind the columns"
            order_by "ORDER BY of a table"
            partition_by "PARTITION BY of a table"
            cluster_by "CLUSTER BY of a table"
            clustered_by "CLUSTERED BY of a table"
            inherits "INHERITS"
            partition_of "PARTITION OF"
            for_values "FOR VALUES"
            strict "STRICT"
            copy_grants "COPY GRANTS"
            enable_schema_evolution "ENABLE_SCHEMA_EVOLUTION"
            change_tracking "CHANGE_TRACKING"
            data_retention_time_in_days "DATA_RETENTION_TIME_IN_DAYS"
            max_data_extension_time_in_days "MAX_DATA_EXTENSION_TIME_IN_DAYS"
            default_ddl_collation "DEFAULT_DDL_COLLATION"
            with_aggregation_policy "WITH AGGREGATION_POLICY"
            with_row_access_policy "WITH ROW_ACCESS_POLICY"
            with_storage_lifecycle_policy "WITH STORAGE_LIFECYCLE_POLICY"
            with_tags "WITH TAGS"
            external_volume "EXTERNAL_VOLUME"
            base_location "BASE_LOCATION"
            catalog "CATALOG"
            catalog_sync "CATALOG_SYNC"
            storage_serialization_policy "STORAGE_SERIALIZATION_POLICY"
            target_lag "TARGET_LAG"
            warehouse "WAREHOUSE"
            refresh_mode "REFRESH_MODE"
            initialize "INITIALIZE"
            require_user "REQUIRE_USER"
            diststyle "DISTSTYLE"
            distkey "DISTKEY"
            sortkey "SORTKEY"
            backup "BACKUP"
    );
    none_of(&unused, || create.name.span())
}

/// Refuses clauses beside the query of a CREATE TABLE … AS: its columns come from that.
fn check_rest_of_query(create: &CreateTable) -> Result<()> {
    let has_options = !matches!(create.table_options, CreateTableOptions::None);
    let refused: &[(&dyn Clause, &str)] = &[
        (&create.columns, "CREATE TABLE … AS with columns (name them in the SELECT)"),
        (&create.constraints, "CREATE TABLE … AS with a constraint"),
        (&has_options, "CREATE TABLE … AS with options"),
    ];
    none_of(refused, || create.name.span())
}

/// Refuses the clauses that the parser always fills in.
fn check_hive(create: &CreateTable) -> Result<()> {
    let at = || create.name.span();
    match create.hive_distribution {
        HiveDistributionStyle::NONE => {}
        HiveDistributionStyle::PARTITIONED { .. } | HiveDistributionStyle::SKEWED { .. } => {
            refuse("PARTITIONED BY or SKEWED BY", at)?;
        }
    }
    if let Some(HiveFormat { row_format, serde_properties, storage, location }) =
        &create.hive_formats
    {
        let refused: &[(&dyn Clause, &str)] = &[
            (row_format, "ROW FORMAT"),
            (serde_properties, "WITH SERDEPROPERTIES"),
            (storage, "STORED AS"),
            (location, "LOCATION"),
        ];
        none_of(refused, at)?;
    }
    Ok(())
}

/// Refuses the parts of a CREATE TABLE that nothing reads.
pub fn check_table(create: &CreateTable) -> Result<()> {
    check_clauses(create)?;
    check_hive(create)?;
    if create.query.is_some() {
        check_rest_of_query(create)?;
    }
    for ColumnDef { name, data_type, options } in &create.columns {
        data_type::check(data_type, || name.span)?;
        for ColumnOptionDef { name: _, option } in options {
            check_option(option, name)?;
        }
    }
    for constraint in &create.constraints {
        check_constraint(constraint)?;
    }
    check(create)
}

/// Refuses parts of the options that a column may have; the table's definition refuses others by their names.
fn check_option(option: &ColumnOption, column: &Ident) -> Result<()> {
    let at = || column.span;
    match option {
        ColumnOption::PrimaryKey(key) => check_key(key, at),
        ColumnOption::ForeignKey(key) => check_reference(key, at),
        ColumnOption::Null
        | ColumnOption::NotNull
        | ColumnOption::Default(_)
        | ColumnOption::Materialized(_)
        | ColumnOption::Ephemeral(_)
        | ColumnOption::Alias(_)
        | ColumnOption::Unique(_)
        | ColumnOption::Check(_)
        | ColumnOption::DialectSpecific(_)
        | ColumnOption::CharacterSet(_)
        | ColumnOption::Collation(_)
        | ColumnOption::Comment(_)
        | ColumnOption::OnUpdate(_)
        | ColumnOption::Generated { .. }
        | ColumnOption::Options(_)
        | ColumnOption::Identity(_)
        | ColumnOption::OnConflict(_)
        | ColumnOption::Policy(_)
        | ColumnOption::Tags(_)
        | ColumnOption::Srid(_)
        | ColumnOption::Invisible => Ok(()),
    }
}

/// Refuses parts of the constraints that a table may have; its definition refuses others by their names.
fn check_constraint(constraint: &TableConstraint) -> Result<()> {
    let at = || constraint.span();
    match constraint {
        TableConstraint::PrimaryKey(key) => check_key(key, at),
        TableConstraint::ForeignKey(key) => check_reference(key, at),
        TableConstraint::Unique(_)
        | TableConstraint::Check(_)
        | TableConstraint::Index(_)
        | TableConstraint::FulltextOrSpatial(_)
        | TableConstraint::PrimaryKeyUsingIndex(_)
        | TableConstraint::UniqueUsingIndex(_) => Ok(()),
    }
}

fn check_key(key: &PrimaryKeyConstraint, at: impl Fn() -> Span) -> Result<()> {
    let PrimaryKeyConstraint {
        name: _,
        index_name,
        index_type,
        columns,
        index_options,
        characteristics,
    } = key;
    let refused: &[(&dyn Clause, &str)] = &[
        (index_name, "the name of an index"),
        (index_type, "the type of an index"),
        (index_options, "an option of an index"),
    ];
    none_of(refused, &at)?;
    if let Some(ConstraintCharacteristics { deferrable, initially, enforced: _ }) = characteristics
    {
        let refused: &[(&dyn Clause, &str)] = &[
            (deferrable, "DEFERRABLE of a PRIMARY KEY"),
            (initially, "INITIALLY of a PRIMARY KEY"),
        ];
        none_of(refused, &at)?;
    }
    for IndexColumn { column, operator_class } in columns {
        let refused: &[(&dyn Clause, &str)] = &[
            (operator_class, "an operator class in a PRIMARY KEY"),
            (&column.options.asc, "ASC or DESC in a PRIMARY KEY"),
            (&column.options.nulls_first, "NULLS FIRST or LAST in a PRIMARY KEY"),
        ];
        none_of(refused, || column.expr.span())?;
        super::clause::check_order(std::slice::from_ref(column))?;
    }
    Ok(())
}

/// Foreign keys are not enforced; their actions on a change of the row that they refer to are refused.
fn check_reference(key: &ForeignKeyConstraint, at: impl Fn() -> Span) -> Result<()> {
    let ForeignKeyConstraint {
        name: _,
        index_name,
        columns: _,
        foreign_table: _,
        referred_columns: _,
        on_delete,
        on_update,
        match_kind,
        characteristics,
    } = key;
    let refused: &[(&dyn Clause, &str)] = &[
        (index_name, "the name of an index"),
        (on_delete, "ON DELETE of a foreign key"),
        (on_update, "ON UPDATE of a foreign key"),
        (match_kind, "MATCH of a foreign key"),
    ];
    none_of(refused, &at)?;
    if let Some(ConstraintCharacteristics { deferrable, initially, enforced }) = characteristics {
        let is_enforced = *enforced == Some(true);
        let refused: &[(&dyn Clause, &str)] = &[
            (deferrable, "DEFERRABLE of a foreign key"),
            (initially, "INITIALLY of a foreign key"),
            (&is_enforced, "ENFORCED of a foreign key"),
        ];
        none_of(refused, &at)?;
    }
    Ok(())
}
