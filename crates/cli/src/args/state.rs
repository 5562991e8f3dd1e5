//! The options that say where an engine keeps its state.

use std::path::PathBuf;

use alluvium::{Builder, Durability};

#[cfg(feature = "remote")]
use crate::journal::args::JournalArgs;

/// Where an engine keeps its state.
#[derive(Clone, Debug, Default, PartialEq, clap::Args)]
pub(crate) struct StateArgs {
    /// Keeps everything in this folder, and goes on from there
    #[arg(id = "state", long, value_name = "DIR")]
    pub(crate) directory: Option<String>,
    /// When a commit is on the disk: always (before it returns), never, or interval(MS) [default: always]
    #[arg(long, value_name = "WHEN", value_parser = durability, requires = "state")]
    pub(crate) durability: Option<Durability>,
}

/// What an engine that runs statements goes on from.
#[derive(Clone, Debug, Default, PartialEq, clap::Args)]
pub(crate) struct OpenArgs {
    #[command(flatten)]
    pub(crate) state: StateArgs,
    #[cfg(feature = "remote")]
    #[command(flatten)]
    pub(crate) journal: JournalArgs,
    /// Leaves out what was committed behind this epoch; a copy that has it is put aside in the folder
    #[arg(long, value_name = "EPOCH", requires = "state")]
    pub(crate) until: Option<u64>,
    /// The folder of secrets, which connectors name as ${secret:NAME}: each is a file
    #[arg(long, value_name = "DIR")]
    pub(crate) secrets: Option<PathBuf>,
}

impl OpenArgs {
    /// Gives an engine its state directory, if there is one, and says up to where to resume from it, and its secrets.
    ///
    /// # Errors
    /// If the journal's address or certificates cannot be used.
    pub(crate) fn apply(&self, builder: Builder) -> Result<Builder, String> {
        let builder = self.state.apply(builder);
        #[cfg(feature = "remote")]
        let builder = self.journal.apply(builder)?;
        let builder = match &self.secrets {
            Some(directory) => builder.secrets(directory),
            None => builder,
        };
        Ok(match self.until {
            Some(epoch) => builder.until(epoch),
            None => builder,
        })
    }
}

impl StateArgs {
    /// Gives an engine its state directory, if there is one.
    fn apply(&self, builder: Builder) -> Builder {
        let builder = match &self.directory {
            Some(directory) => builder.state(format!("file:{directory}")),
            None => builder,
        };
        builder.durability(self.durability.unwrap_or_default())
    }
}

fn durability(text: &str) -> Result<Durability, &'static str> {
    let expected = "expected always, never, or interval(MS) with a number of milliseconds";
    text.parse().map_err(|_| expected)
}
