//! A journal that is not among the files of its engine.

use std::fmt::Debug;
use std::sync::Arc;

use crate::error::Result;
use crate::journal::Journal;

/// A journal on another disk or another machine, before it is opened.
pub trait Elsewhere: Send + Sync + Debug {
    /// Where it is, as users write it.
    fn url(&self) -> String;

    /// Opens it to be written, and returns its identity, which no other journal has. All records that it has are durable then. Who
    /// has opened it before cannot write to it any more.
    ///
    /// # Errors
    ///
    /// If `identity` is given, and is not that of the journal at this place; nothing is changed then.
    fn open(&self, identity: Option<&str>) -> Result<(String, Arc<dyn Journal>)>;
}
