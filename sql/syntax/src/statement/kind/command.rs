//! The names of commands.

use crate::statement::{AlteredKind, GrantKind, Granted, Statement, StatementKind, ViewKind};

impl Statement {
    /// The command of the statement, as Postgres names it: `SELECT`, `CREATE TABLE`, `ROLLBACK TO`.
    pub fn command(&self) -> &'static str {
        match &self.kind {
            StatementKind::CreateTable(_) | StatementKind::CreateTableFrom { .. } => "CREATE TABLE",
            StatementKind::CreateTableAs { .. } => "CREATE TABLE AS",
            StatementKind::CreateView(view) => match view.kind {
                ViewKind::Materialized => "CREATE MATERIALIZED VIEW",
                ViewKind::Plain | ViewKind::Local => "CREATE VIEW",
            },
            StatementKind::DeclareView(_) => "DECLARE RECURSIVE VIEW",
            StatementKind::Lateness(_) => "LATENESS",
            StatementKind::CreateSchema(_) => "CREATE SCHEMA",
            StatementKind::DropSchema(_) => "DROP SCHEMA",
            StatementKind::CreateSequence(_) => "CREATE SEQUENCE",
            StatementKind::DropSequence(_) => "DROP SEQUENCE",
            StatementKind::RestartSequence(_) => "ALTER SEQUENCE",
            StatementKind::CreateFunction(_) => "CREATE FUNCTION",
            StatementKind::DropFunction(_) => "DROP FUNCTION",
            StatementKind::Alter(alter) => match alter.kind {
                AlteredKind::Table => "ALTER TABLE",
                AlteredKind::View => "ALTER VIEW",
                AlteredKind::MaterializedView => "ALTER MATERIALIZED VIEW",
            },
            StatementKind::CreateSecret(_) => "CREATE SECRET",
            StatementKind::DropSecret(_) => "DROP SECRET",
            StatementKind::CreateConnection(_) => "CREATE CONNECTION",
            StatementKind::DropConnection(_) => "DROP CONNECTION",
            StatementKind::CreateSink(_) => "CREATE SINK",
            StatementKind::DropSink(_) => "DROP SINK",
            StatementKind::AlterSource(_) => "ALTER SOURCE",
            StatementKind::DropTable(_) => "DROP TABLE",
            StatementKind::DropView(_) => match self.has_word(1, "MATERIALIZED") {
                true => "DROP MATERIALIZED VIEW",
                false => "DROP VIEW",
            },
            StatementKind::DropSeveral(drops) => drops.first().map_or("DROP TABLE", Self::command),
            StatementKind::Truncate(_) => TRUNCATE,
            StatementKind::Refresh { .. } => "REFRESH MATERIALIZED VIEW",
            StatementKind::Vacuum => match self.has_word(0, "VACUUM") {
                true => "VACUUM",
                false => "ANALYZE",
            },
            StatementKind::Comment(_) => "COMMENT",
            StatementKind::CreateRole(_) => "CREATE ROLE",
            StatementKind::AlterRole(_) => "ALTER ROLE",
            StatementKind::DropRole { .. } => "DROP ROLE",
            StatementKind::Grant(grant) => match &grant.granted {
                Granted::Membership(_) if grant.revokes => "REVOKE ROLE",
                Granted::Membership(_) => "GRANT ROLE",
                Granted::Privileges { .. } if grant.revokes => "REVOKE",
                Granted::Privileges { .. } => "GRANT",
            },
            StatementKind::SetOwner(owner) => match owner.object.kind {
                GrantKind::Schema => "ALTER SCHEMA",
                GrantKind::Sequence => "ALTER SEQUENCE",
                GrantKind::Function => "ALTER FUNCTION",
                GrantKind::Secret => "ALTER SECRET",
                GrantKind::Connection => "ALTER CONNECTION",
                _ => "ALTER TABLE",
            },
            StatementKind::SetRole(_) => "SET",
            StatementKind::CreateIndex(_) => "CREATE INDEX",
            StatementKind::DropIndex(_) => "DROP INDEX",
            StatementKind::Insert(_) => "INSERT",
            StatementKind::Update(_) => "UPDATE",
            StatementKind::Delete(_) => match self.has_word(0, "TRUNCATE") {
                true => TRUNCATE,
                false => "DELETE",
            },
            StatementKind::Begin(_) => match self.has_word(0, "START") {
                true => "START TRANSACTION",
                false => "BEGIN",
            },
            StatementKind::Commit { .. } => "COMMIT",
            StatementKind::Rollback { .. } => "ROLLBACK",
            StatementKind::RollbackTo(_) => "ROLLBACK TO",
            StatementKind::Savepoint(_) => "SAVEPOINT",
            StatementKind::Release(_) => "RELEASE",
            StatementKind::Prepare { .. } => "PREPARE",
            StatementKind::Execute { .. } => "EXECUTE",
            StatementKind::Deallocate(Some(_)) => "DEALLOCATE",
            StatementKind::Deallocate(None) => "DEALLOCATE ALL",
            StatementKind::DeclareCursor(_) => "DECLARE CURSOR",
            StatementKind::Fetch { .. } => "FETCH",
            StatementKind::Move { .. } => "MOVE",
            StatementKind::Close(Some(_)) => "CLOSE CURSOR",
            StatementKind::Close(None) => "CLOSE CURSOR ALL",
            StatementKind::Start => "START",
            StatementKind::Checkpoint => "CHECKPOINT",
            StatementKind::Copy { .. }
            | StatementKind::CopyTo { .. }
            | StatementKind::CopyChanges { .. } => "COPY",
            StatementKind::Query(_) | StatementKind::LockingQuery(_) => "SELECT",
            StatementKind::Set(_) => "SET",
            StatementKind::ShowTables
            | StatementKind::ShowSources
            | StatementKind::ShowSinks
            | StatementKind::Show { .. } => "SHOW",
            StatementKind::Reset { .. } => "RESET",
            StatementKind::DiscardAll => "DISCARD ALL",
            StatementKind::Describe { .. } | StatementKind::DescribeFile { .. } => "DESCRIBE",
            StatementKind::Subscribe(_) => "SUBSCRIBE",
            StatementKind::Listen(_) => "LISTEN",
            StatementKind::Unlisten(_) => "UNLISTEN",
            StatementKind::ExplainView { .. }
            | StatementKind::ExplainState { .. }
            | StatementKind::ExplainAnalyze { .. }
            | StatementKind::ExplainSelect { .. } => "EXPLAIN",
        }
    }

    /// Whether a word of its text is this one.
    fn has_word(&self, place: usize, word: &str) -> bool {
        self.text
            .split_whitespace()
            .nth(place)
            .is_some_and(|other| other.eq_ignore_ascii_case(word))
    }
}

const TRUNCATE: &str = "TRUNCATE TABLE";

#[cfg(test)]
mod tests {
    use crate::statement::parse;

    #[test]
    fn commands_are_named_as_postgres_names_them() {
        let named =
            |sql: &str| parse(sql).next().map(|read| read.map(|statement| statement.command()));
        for (sql, command) in [
            ("SELECT 1", "SELECT"),
            ("CREATE TABLE t (x BIGINT)", "CREATE TABLE"),
            ("CREATE TABLE t AS SELECT 1 AS x", "CREATE TABLE AS"),
            ("CREATE VIEW v AS SELECT 1 AS x", "CREATE VIEW"),
            ("CREATE MATERIALIZED VIEW v AS SELECT 1 AS x", "CREATE MATERIALIZED VIEW"),
            ("DROP VIEW v", "DROP VIEW"),
            ("drop materialized view v", "DROP MATERIALIZED VIEW"),
            ("DROP TABLE a, b", "DROP TABLE"),
            ("INSERT INTO t VALUES (1)", "INSERT"),
            ("DELETE FROM t", "DELETE"),
            ("TRUNCATE t", "TRUNCATE TABLE"),
            ("TRUNCATE a, b", "TRUNCATE TABLE"),
            ("BEGIN", "BEGIN"),
            ("START TRANSACTION", "START TRANSACTION"),
            ("END", "COMMIT"),
            ("ROLLBACK TO a", "ROLLBACK TO"),
            ("DEALLOCATE ALL", "DEALLOCATE ALL"),
            ("ALTER SOURCE t PAUSE", "ALTER SOURCE"),
            ("SHOW search_path", "SHOW"),
            ("SHOW SOURCES", "SHOW"),
        ] {
            assert!(
                matches!(named(sql), Some(Ok(name)) if name == command),
                "{sql}: {:?}",
                named(sql)
            );
        }
    }
}
