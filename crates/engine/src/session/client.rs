//! A session of a client, whose status others see.

use super::Session;
use crate::log;
use crate::session::clients::ClientInfo;

impl Session {
    /// Its number among the sessions of clients, if it is one.
    pub(super) fn client_session(&self) -> Option<u64> {
        self.client.as_ref().map(|client| client.session())
    }

    /// The session is that of a client.
    pub(super) fn become_client(&mut self, info: &ClientInfo) {
        self.settings.number = info.number;
        self.client = Some(self.instance().clients.add(info));
        self.note_settled();
    }

    /// A call of the client begins.
    pub(super) fn note_call(&self) {
        if let Some(client) = &self.client {
            client.begin_call();
        }
    }

    /// A statement with this command begins.
    pub(super) fn note_statement(&self, command: impl FnOnce() -> &'static str) {
        if let Some(client) = &self.client {
            client.begin_statement(command());
        }
    }

    /// A statement begins in the log. Servers know themselves which statements of their clients are slow.
    pub(super) fn logged(&self, command: Option<&'static str>) -> log::Statement {
        let slow = self.instance().settings.slow_statement;
        let slow = (self.client.is_none() && !slow.is_zero()).then_some(slow);
        log::Statement::begin(command, slow)
    }

    /// A call of the client has ended.
    pub(super) fn note_settled(&self) {
        let Some(client) = &self.client else { return };
        let transaction = self.transaction.as_ref().map(|open| open.number_and_time());
        client.end_call((transaction, self.is_aborted()), self.settings.revision(), || {
            let role = self.current_role().map(ToOwned::to_owned);
            (role, self.settings.application_name().to_owned())
        });
    }
}
