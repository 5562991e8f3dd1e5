//! The syntax of a simple query, and of its parts.

use sqlparser::ast::helpers::attached_token::AttachedToken;
use sqlparser::ast::{
    AccessExpr, BinaryOperator, Expr, GroupByExpr, Ident, ObjectName, Query, Select, SelectFlavor,
    SelectItem, SetExpr, Subscript, TableAlias, TableAliasColumnDef, TableFactor, TableWithJoins,
    Value,
};

/// `SELECT items FROM from WHERE selection`
pub fn simple_query(
    projection: Vec<SelectItem>,
    from: Vec<TableWithJoins>,
    selection: Option<Expr>,
) -> Query {
    let select = Select {
        select_token: AttachedToken::empty(),
        optimizer_hints: Vec::new(),
        distinct: None,
        select_modifiers: None,
        top: None,
        top_before_distinct: false,
        projection,
        exclude: None,
        into: None,
        from,
        lateral_views: Vec::new(),
        prewhere: None,
        selection,
        connect_by: Vec::new(),
        group_by: GroupByExpr::Expressions(Vec::new(), Vec::new()),
        cluster_by: Vec::new(),
        distribute_by: Vec::new(),
        sort_by: Vec::new(),
        having: None,
        named_window: Vec::new(),
        qualify: None,
        window_before_qualify: false,
        value_table_mode: None,
        flavor: SelectFlavor::Standard,
    };
    Query {
        with: None,
        body: Box::new(SetExpr::Select(Box::new(select))),
        order_by: None,
        limit_clause: None,
        fetch: None,
        locks: Vec::new(),
        for_clause: None,
        settings: None,
        format_clause: None,
        pipe_operators: Vec::new(),
    }
}

/// A query in FROM.
pub fn from_query(query: Query, alias: TableAlias) -> TableWithJoins {
    let relation = TableFactor::Derived {
        lateral: false,
        subquery: Box::new(query),
        alias: Some(alias),
        sample: None,
    };
    TableWithJoins { relation, joins: Vec::new() }
}

/// `AS name`
pub fn known_as(name: Ident) -> TableAlias {
    TableAlias { explicit: true, name, columns: Vec::new(), at: None }
}

/// `AS name (columns)`
pub(super) fn with_columns(name: Ident, columns: impl IntoIterator<Item = Ident>) -> TableAlias {
    let columns = columns.into_iter();
    let columns = columns.map(|name| TableAliasColumnDef { name, data_type: None }).collect();
    TableAlias { columns, ..known_as(name) }
}

/// `'text'`
pub(super) fn text(text: &str) -> Expr {
    Expr::value(Value::SingleQuotedString(text.to_owned()))
}

/// `left op right`
pub(super) fn binary(left: Expr, op: BinaryOperator, right: Expr) -> Expr {
    Expr::BinaryOp { left: Box::new(left), op, right: Box::new(right) }
}

/// `(value)['name']`
pub(super) fn field(value: Expr, name: &str) -> Expr {
    let index = text(name);
    Expr::CompoundFieldAccess {
        root: Box::new(value),
        access_chain: vec![AccessExpr::Subscript(Subscript::Index { index })],
    }
}

/// A table in FROM.
pub fn from_table(name: ObjectName, alias: Option<Ident>) -> TableWithJoins {
    let relation = TableFactor::Table {
        name,
        alias: alias.map(known_as),
        args: None,
        with_hints: Vec::new(),
        version: None,
        with_ordinality: false,
        partitions: Vec::new(),
        json_path: None,
        sample: None,
        index_hints: Vec::new(),
    };
    TableWithJoins { relation, joins: Vec::new() }
}
