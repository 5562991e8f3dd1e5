//! Names of servers, and the addresses they have.

use ureq::Error;
use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::NextTimeout;

use crate::systems::addresses::is_of_link;

/// Resolves names as usual, without addresses of this link only: machines in clouds are told their credentials there.
#[derive(Debug, Default)]
pub(super) struct Addresses {
    usual: DefaultResolver,
}

impl Resolver for Addresses {
    fn resolve(
        &self,
        uri: &Uri,
        config: &Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, Error> {
        let found = self.usual.resolve(uri, config, timeout)?;
        match found.iter().any(|address| is_of_link(address.ip())) {
            true => Err(Error::BadUri(format!(
                "{} is an address of this link only, to which nothing connects",
                uri.host().unwrap_or_default()
            ))),
            false => Ok(found),
        }
    }
}
