//! CREATE VIEW.

use sqlparser::ast::{CreateTableOptions, CreateView, Spanned, ViewColumnDef};

use super::check;
use super::clause::{Clause, none_of, refuse};
use crate::error::Result;

/// Refuses the parts of a CREATE VIEW that nothing reads.
pub fn check_view(create: &CreateView) -> Result<()> {
    let CreateView {
        or_alter,
        or_replace: _,
        materialized: _,
        secure,
        name,
        name_before_not_exists: _,
        columns,
        query: _,
        options,
        cluster_by,
        comment,
        with_no_schema_binding,
        if_not_exists: _,
        temporary,
        copy_grants,
        to,
        params,
    } = create;
    let at = || name.span();
    let refused: &[(&dyn Clause, &str)] = &[
        (or_alter, "CREATE OR ALTER VIEW"),
        (secure, "CREATE SECURE VIEW"),
        (temporary, "CREATE TEMPORARY VIEW"),
        (cluster_by, "CLUSTER BY of a view"),
        (comment, "COMMENT of a view"),
        (with_no_schema_binding, "WITH NO SCHEMA BINDING"),
        (copy_grants, "COPY GRANTS"),
        (to, "CREATE VIEW … TO"),
        (params, "ALGORITHM, DEFINER or SQL SECURITY of a view"),
    ];
    none_of(refused, at)?;
    match options {
        CreateTableOptions::None | CreateTableOptions::With(_) | CreateTableOptions::Options(_) => {
        }
        CreateTableOptions::Plain(_) | CreateTableOptions::TableProperties(_) => {
            refuse("an option of a view outside of WITH (…)", at)?;
        }
    }
    for ViewColumnDef { name, data_type, options } in columns {
        let refused: &[(&dyn Clause, &str)] = &[
            (data_type, "a type in a view's column list"),
            (options, "an option in a view's column list"),
        ];
        none_of(refused, || name.span)?;
    }
    check(create)
}
