//! Comments, as definitions change them.

use std::sync::Arc;

use super::{Comments, Sequencer};
use crate::durable::record::Record;
use crate::error::Result;

impl Sequencer {
    /// The comments.
    pub(crate) fn comments(&self) -> Comments {
        self.state.lock().comments.clone()
    }

    /// Records a comment, or that there is none from now on.
    pub(crate) fn comment(
        &self,
        record: &Record,
        name: &str,
        column: Option<&str>,
        text: Option<Arc<str>>,
    ) -> Result<()> {
        self.poison.check()?;
        let mut state = self.state.lock();
        self.durable.append(record)?;
        state.comments.set(name, column, text);
        Ok(())
    }

    /// Has comments follow a definition, which is recorded.
    pub(crate) fn change_comments(&self, change: impl FnOnce(&mut Comments)) {
        change(&mut self.state.lock().comments);
    }
}
