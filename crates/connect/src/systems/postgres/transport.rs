//! Postgres as the system that tables are read from.

use alluvium::{Result, SourceReader, System, Transport, TransportConnector, TransportRequest};

use super::connection::Connection;
use super::failure::Failure;
use super::position::Position;
use super::reader::Input;
use super::session::Limits;
use super::settings::{Settings, shown};
use super::upstream::{Shape, Upstream, is_taken};

/// Postgres: tables are snapshots of tables there, and follow their changes; and the rows of views are kept in tables there.
///
/// An epoch of what is read has whole transactions of the database. Rows are recorded: a slot cannot be read twice.
#[derive(Clone, Copy, Debug, Default)]
pub struct Postgres;

impl System for Postgres {
    fn name(&self) -> &str {
        "postgres"
    }

    fn check(&self, option: &str, value: &str) -> Result<()> {
        Settings::check(option, value)
    }

    fn is_secret(&self, option: &str) -> bool {
        Settings::is_secret(option)
    }

    fn is_of_connection(&self, option: &str) -> bool {
        Settings::is_of_connection(option)
    }

    fn is_file(&self, option: &str) -> bool {
        option == "sslrootcert"
    }

    fn hosts(&self, connector: &TransportConnector) -> Option<Vec<String>> {
        Some(Settings::address(connector).into_iter().collect())
    }
}

impl Transport for Postgres {
    fn place(&self, connector: &TransportConnector) -> Result<String> {
        Ok(Settings::read(&shown(connector)?)?.place())
    }

    fn open(&self, request: &TransportRequest) -> Result<Box<dyn SourceReader>> {
        let settings = Settings::of_source(&request.connector)?;
        let shape = Shape {
            schema: request.schema.clone(),
            has_default: request.has_default.clone(),
            key: request.key.clone(),
        };
        let position =
            request.start.as_ref().map(|start| Position::read(start.bytes())).transpose()?;
        if position.is_none() {
            check(&settings, &shape)?;
        }
        let most = Limits { rows: request.batch_rows, bytes: request.batch_bytes };
        let (connector, live) = (request.connector.clone(), request.live.clone());
        let input = Input::new((connector, settings), shape, most, live, request.lasts, position);
        Ok(Box::new(input))
    }
}

/// Fails if what the settings name is not there, or does not suit the table. A server that is away is looked at later.
fn check(settings: &Settings, shape: &Shape) -> Result<()> {
    let look = || {
        let mut connection = Connection::open(settings, false, None)?;
        let mut upstream = Upstream { connection: &mut connection, settings };
        upstream.table(shape)?;
        upstream.slot()
    };
    match look() {
        Ok(Some(slot)) if !slot.is_temporary => Err(is_taken(settings)),
        Ok(_) | Err(Failure::Passing(_)) => Ok(()),
        Err(Failure::Final(error)) => Err(error),
    }
}
