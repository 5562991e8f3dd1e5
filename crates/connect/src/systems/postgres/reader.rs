//! Reading a table: its snapshot, and the transactions after it.

use alluvium::{Error, Live, Portion, SourcePosition, SourceReader, TransportConnector};

use super::connection::Connection;
use super::failure::{Failure, Result};
use super::position::{Lsn, Position};
use super::rows::Rows;
use super::session::{Limits, Phase, Session};
use super::settings::Settings;
use super::upstream::{Shape, Upstream, is_taken};
use crate::systems::waiting::Backoff;

/// Reads the rows of a table.
pub struct Input {
    connector: TransportConnector,
    settings: Settings,
    shape: Shape,
    most: Limits,
    live: Option<Live>,
    /// Whether positions outlive the engine.
    lasts: bool,
    /// After the last portion that ended a transaction.
    position: Option<Position>,
    /// Whether portions of a transaction were handed on that has not ended.
    is_within: bool,
    /// Whether these are to be forgotten.
    restarts: bool,
    session: Option<Session>,
    backoff: Backoff,
}

impl Input {
    /// Begins at a position, or else with a snapshot.
    pub fn new(
        (connector, settings): (TransportConnector, Settings),
        shape: Shape,
        most: Limits,
        live: Option<Live>,
        lasts: bool,
        position: Option<Position>,
    ) -> Self {
        Self {
            connector,
            settings,
            shape,
            most,
            live,
            lasts,
            position,
            is_within: false,
            restarts: false,
            session: None,
            backoff: Backoff::default(),
        }
    }

    /// The next portion over the connection there is, or a new one.
    fn step(&mut self) -> Result<Portion> {
        let mut session = match self.session.take() {
            Some(session) => session,
            None => match self.open()? {
                Some(session) => session,
                None => {
                    // The next portion begins once it is durable that the slot is ours.
                    self.position = Some(Position::Begun);
                    let nothing = Rows::new(&self.shape.schema, &[], &[]).finish("");
                    return nothing.map_err(|error| Failure::Final(error.into()));
                }
            },
        };
        let durable = match self.position {
            Some(Position::At(lsn)) => lsn,
            _ => Lsn(0),
        };
        let (most, live) = (self.most, self.live.as_ref());
        let (mut portion, end) = match session.phase {
            Phase::Snapshot(start) => match session.copy(&self.settings, most)? {
                Some(portion) => (portion, None),
                None => (session.finish()?, Some(start)),
            },
            Phase::Stream(_) => session.follow(most, live, (durable, self.lasts))?,
        };
        self.session = Some(session);
        self.backoff = Backoff::default();
        portion.restarts = std::mem::take(&mut self.restarts);
        portion.continues = end.is_none();
        self.is_within = portion.continues;
        if let Some(end) = end {
            self.position = Some(Position::At(end));
        }
        Ok(portion)
    }

    /// Connects, and begins to read where the position says. `None` if it has to be recorded first that the slot is ours.
    fn open(&mut self) -> Result<Option<Session>> {
        // Its password may be another one now.
        self.settings = Settings::of_source(&self.connector)?;
        let mut connection = Connection::open(&self.settings, true, self.live.as_ref())?;
        let settings = &self.settings;
        let mut upstream = Upstream { connection: &mut connection, settings };
        let table = upstream.table(&self.shape)?;
        let mut rows = Rows::new(&self.shape.schema, &table.columns, &self.shape.key);
        let phase = match self.position {
            Some(Position::At(lsn)) if self.lasts => {
                if upstream.slot_with(lsn)?.is_active {
                    return Err(Failure::Passing("the slot is in use".to_owned()));
                }
                upstream.follow(lsn)?;
                Phase::Stream(lsn)
            }
            None if self.lasts => {
                return match upstream.slot()? {
                    Some(_) => Err(is_taken(settings).into()),
                    None => Ok(None),
                };
            }
            position => {
                match upstream.slot()? {
                    Some(slot) if slot.is_active => {
                        return Err(Failure::Passing("the slot is in use".to_owned()));
                    }
                    Some(_) if self.lasts => upstream.drop_slot()?,
                    Some(_) => return Err(is_taken(settings).into()),
                    None => {}
                }
                if position.is_some() && !self.lasts {
                    rows.truncate();
                }
                Phase::Snapshot(upstream.begin_snapshot((&table, &self.shape), !self.lasts)?)
            }
        };
        let place = (table.id, settings.table());
        Ok(Some(Session::new(connection, place, rows, phase)))
    }
}

impl SourceReader for Input {
    fn next(&mut self) -> alluvium::Result<Option<Portion>> {
        loop {
            match self.step() {
                Ok(portion) => return Ok(Some(portion)),
                Err(Failure::Final(error)) => return Err(error),
                Err(Failure::Passing(reason)) => {
                    if self.backoff.is_over(self.live.as_ref()) {
                        let place = self.settings.place();
                        return Err(Error::source(format!("{place} cannot be read: {reason}")));
                    }
                    self.session = None;
                    self.restarts |= std::mem::take(&mut self.is_within);
                }
            }
            self.backoff.wait(self.live.as_ref())?;
        }
    }

    fn position(&self) -> Option<SourcePosition> {
        let position = self.position.as_ref()?;
        Some(SourcePosition::new(position.bytes(), position.to_string()))
    }

    fn replays(&self) -> bool {
        false
    }

    fn unread_bytes(&self) -> Option<u64> {
        let (session, Some(Position::At(at))) = (self.session.as_ref()?, self.position) else {
            return None;
        };
        Some(session.end().0.saturating_sub(at.0))
    }
}
