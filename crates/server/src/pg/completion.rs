//! The message that a statement is complete.

use pgwire::messages::PgWireBackendMessage as Answer;
use pgwire::messages::response::CommandComplete;

/// The answer that a command is complete, which changed, sent or passed so many rows.
pub(super) fn complete(command: &str, rows: Option<u64>) -> Answer {
    Answer::CommandComplete(CommandComplete::new(tag(command, rows)))
}

/// Its text: clients read the number of rows from its last word.
fn tag(command: &str, rows: Option<u64>) -> String {
    let rows = match (command, rows) {
        ("ROLLBACK TO", _) => return "ROLLBACK".to_owned(),
        (_, None) => return command.to_owned(),
        (_, Some(rows)) => rows,
    };
    match command {
        // The first number was that of a row without a key.
        "INSERT" => format!("INSERT 0 {rows}"),
        "CREATE TABLE AS" | "DESCRIBE" => format!("SELECT {rows}"),
        "SELECT" | "UPDATE" | "DELETE" | "FETCH" | "MOVE" | "COPY" | "EXECUTE" | "SUBSCRIBE" => {
            format!("{command} {rows}")
        }
        _ => command.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_counted_where_postgres_counts_them() {
        assert_eq!(tag("INSERT", Some(3)), "INSERT 0 3");
        assert_eq!(tag("SELECT", Some(0)), "SELECT 0");
        assert_eq!(tag("CREATE TABLE AS", Some(7)), "SELECT 7");
        assert_eq!(tag("SHOW", Some(1)), "SHOW");
        assert_eq!(tag("TRUNCATE TABLE", Some(9)), "TRUNCATE TABLE");
        assert_eq!(tag("BEGIN", None), "BEGIN");
        assert_eq!(tag("ROLLBACK TO", None), "ROLLBACK");
    }
}
