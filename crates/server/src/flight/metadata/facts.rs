//! What clients ask about the server: GetSqlInfo.

use arrow_flight::sql::metadata::{SqlInfoData, SqlInfoDataBuilder};
use arrow_flight::sql::{
    SqlInfo, SqlNullOrdering, SqlSupportedCaseSensitivity, SqlSupportedTransaction,
    SqlTransactionIsolationLevel,
};
use tonic::Status;

/// The facts about this server.
pub(in crate::flight) fn facts() -> Result<SqlInfoData, Status> {
    let mut facts = SqlInfoDataBuilder::new();
    facts.append(SqlInfo::FlightSqlServerName, "Alluvium");
    facts.append(SqlInfo::FlightSqlServerVersion, env!("CARGO_PKG_VERSION"));
    facts.append(SqlInfo::FlightSqlServerArrowVersion, arrow::ARROW_VERSION);
    facts.append(SqlInfo::FlightSqlServerReadOnly, false);
    facts.append(SqlInfo::FlightSqlServerSql, true);
    facts.append(SqlInfo::FlightSqlServerSubstrait, false);
    facts.append(SqlInfo::FlightSqlServerTransaction, SqlSupportedTransaction::Transaction as i32);
    facts.append(SqlInfo::FlightSqlServerCancel, true);
    facts.append(SqlInfo::FlightSqlServerBulkIngestion, true);
    facts.append(SqlInfo::FlightSqlServerIngestTransactionsSupported, true);
    facts.append(SqlInfo::SqlDdlCatalog, false);
    facts.append(SqlInfo::SqlDdlSchema, true);
    facts.append(SqlInfo::SqlDdlTable, true);
    // Names without quotes are in lower case.
    let lower = SqlSupportedCaseSensitivity::SqlCaseSensitivityLowercase as i32;
    facts.append(SqlInfo::SqlIdentifierCase, lower);
    facts.append(SqlInfo::SqlIdentifierQuoteChar, "\"");
    facts.append(SqlInfo::SqlAllTablesAreSelectable, true);
    facts.append(SqlInfo::SqlNullOrdering, SqlNullOrdering::SqlNullsSortedHigh as i32);
    facts.append(SqlInfo::SqlSchemaTerm, "schema");
    facts.append(SqlInfo::SqlCatalogTerm, "database");
    facts.append(SqlInfo::SqlTransactionsSupported, true);
    let levels = [
        SqlTransactionIsolationLevel::SqlTransactionReadCommitted,
        SqlTransactionIsolationLevel::SqlTransactionRepeatableRead,
        SqlTransactionIsolationLevel::SqlTransactionSerializable,
    ];
    let levels = levels.iter().fold(0, |bits, level| bits | 1 << (*level as i32));
    facts.append(SqlInfo::SqlSupportedTransactionsIsolationLevels, levels);
    facts.append(
        SqlInfo::SqlDefaultTransactionIsolation,
        i64::from(SqlTransactionIsolationLevel::SqlTransactionSerializable as i32),
    );
    facts.append(SqlInfo::SqlDataDefinitionsInTransactionsIgnored, false);
    facts.append(SqlInfo::SqlBatchUpdatesSupported, true);
    facts.append(SqlInfo::SqlNamedParametersSupported, false);
    facts.build().map_err(Status::from)
}
