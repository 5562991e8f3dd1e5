//! The statement that creates an index which would help.

use alluvium_sql::name;

/// The statement that creates an index of these columns of a relation, named after them.
pub(super) fn create_index(relation: &str, columns: &[&str]) -> String {
    let (_, short) = name::split(relation);
    let index = name::spelled(&format!("{short}_by_{}", columns.join("_")));
    let columns: Vec<String> = columns.iter().map(|column| name::spelled(column)).collect();
    format!("CREATE INDEX {index} ON {} ({})", name::written(relation), columns.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_quotes_where_they_need_them() {
        let statement = create_index("s.t", &["a", "b"]);
        assert_eq!(statement, "CREATE INDEX t_by_a_b ON s.t (a, b)");
        let statement = create_index("Two words", &["order"]);
        assert_eq!(statement, "CREATE INDEX \"Two words_by_order\" ON \"Two words\" (\"order\")");
    }
}
