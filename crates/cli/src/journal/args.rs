//! The options about journals on other machines.

use std::net::SocketAddr;
#[cfg(feature = "serve")]
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;

use alluvium::Builder;
use alluvium::unstable::BuilderParts;
use alluvium_remote::{Identity, JournalPlace};

use crate::size;

/// The commands for journals.
#[derive(Debug, PartialEq, clap::Subcommand)]
pub(crate) enum JournalCommand {
    /// Keeps journals in a directory, each for one engine, until a signal ends it
    Serve(ServeArgs),
}

/// The arguments of `alluvium journal serve`.
#[derive(Debug, PartialEq, clap::Args)]
pub(crate) struct ServeArgs {
    /// The address, such as 127.0.0.1:7301. Others than loopback ones need certificates
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: SocketAddr,
    /// The directory, with a folder for each journal
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// Deletes no records, also not those that checkpoints have: an engine can begin with an empty folder
    #[arg(long)]
    pub(crate) keep_all: bool,
    /// The size up to which a journal keeps records that only standbys need
    #[arg(long, value_name = "SIZE", value_parser = size::parse, default_value = "16G")]
    pub(crate) keep_for_standbys: usize,
    /// The certificate of the server and those above it, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_key", requires = "tls_authority")]
    tls_certificate: Option<PathBuf>,
    /// The private key of the certificate, in PEM, which nobody else may read
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    tls_key: Option<PathBuf>,
    /// The authority of the engines' certificates, in PEM: others are refused
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    tls_authority: Option<PathBuf>,
}

impl ServeArgs {
    /// The certificates of the server, if it has some.
    ///
    /// # Errors
    /// If they cannot be used.
    pub(crate) fn identity(&self) -> Result<Option<Identity>, String> {
        identity(&self.tls_certificate, &self.tls_key, &self.tls_authority)
    }
}

/// Where the journal of an engine is.
#[derive(Clone, Debug, Default, PartialEq, clap::Args)]
pub(crate) struct JournalArgs {
    /// The journal of the folder, on a server: https://HOST:PORT/NAME with certificates, or http://127.0.0.1:PORT/NAME
    #[arg(long, value_name = "URL", requires = "state")]
    journal: Option<String>,
    /// The certificate that the server of the journal is shown, in PEM
    #[arg(long, value_name = "FILE", requires = "journal_key", requires = "journal_authority")]
    journal_certificate: Option<PathBuf>,
    /// Its private key, in PEM, which nobody else may read
    #[arg(long, value_name = "FILE", requires = "journal_certificate")]
    journal_key: Option<PathBuf>,
    /// The authority of the server's certificate, in PEM
    #[arg(long, value_name = "FILE", requires = "journal_certificate")]
    journal_authority: Option<PathBuf>,
}

impl JournalArgs {
    /// Gives an engine its journal, if it is elsewhere.
    ///
    /// # Errors
    /// If the address or the certificates cannot be used.
    pub(crate) fn apply(&self, builder: Builder) -> Result<Builder, String> {
        Ok(match self.place()? {
            Some(place) => builder.elsewhere(Arc::new(place)),
            None => builder,
        })
    }

    /// The place of the journal; `None` if it is in the folder.
    ///
    /// # Errors
    /// As [`JournalArgs::apply`].
    pub(crate) fn place(&self) -> Result<Option<JournalPlace>, String> {
        let Some(url) = &self.journal else { return Ok(None) };
        let Self { journal_certificate, journal_key, journal_authority, .. } = self;
        let identity = identity(journal_certificate, journal_key, journal_authority);
        let identity = identity.map_err(|error| format!("journal_certificate: {error}"))?;
        let place = JournalPlace::new(url, identity.as_ref());
        place.map(Some).map_err(|error| format!("journal: {error}"))
    }

    /// The names of the options that are files, with these.
    #[cfg(feature = "serve")]
    pub(crate) fn files(&self) -> [(&'static str, Option<&Path>); 3] {
        [
            ("journal_certificate", self.journal_certificate.as_deref()),
            ("journal_key", self.journal_key.as_deref()),
            ("journal_authority", self.journal_authority.as_deref()),
        ]
    }
}

/// The certificates that these files have; `None` without files.
fn identity(
    certificate: &Option<PathBuf>,
    key: &Option<PathBuf>,
    authority: &Option<PathBuf>,
) -> Result<Option<Identity>, String> {
    match (certificate, key, authority) {
        (Some(certificate), Some(key), Some(authority)) => {
            let identity = Identity::read(certificate, key, authority);
            identity.map(Some).map_err(|error| error.to_string())
        }
        _ => Ok(None),
    }
}
