//! Addresses that a client may connect to.

use std::net::{IpAddr, Ipv6Addr};

use ureq::Error;
use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::NextTimeout;

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

/// Whether an address is for machines of one link, and so for what a cloud tells a machine: 169.254.0.0/16 and fe80::/10.
fn is_of_link(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => {
            address.is_unicast_link_local()
                || address.to_ipv4_mapped().is_some_and(|address| address.is_link_local())
                || address == AWS
        }
    }
}

/// Where machines of Amazon's are told their credentials by IPv6.
const AWS: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_a_link_are_known_in_all_their_spellings() {
        for address in
            ["169.254.169.254", "::ffff:169.254.169.254", "fe80::1", "febf::1", "fd00:ec2::254"]
        {
            assert!(is_of_link(address.parse().unwrap()), "{address}");
        }
        for address in ["127.0.0.1", "10.0.0.1", "169.253.0.1", "::1", "fec0::1", "fd00:ec2::253"] {
            assert!(!is_of_link(address.parse().unwrap()), "{address}");
        }
    }
}
