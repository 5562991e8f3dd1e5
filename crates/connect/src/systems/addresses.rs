//! Addresses that nothing connects to.

use std::net::{IpAddr, Ipv6Addr};

/// Where machines of Amazon's are told their credentials by IPv6.
const AWS: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254);

/// Whether an address is for machines of one link only, where a cloud tells a machine its credentials: 169.254.0.0/16 and fe80::/10.
pub fn is_of_link(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => {
            address.is_unicast_link_local()
                || address.to_ipv4_mapped().is_some_and(|address| address.is_link_local())
                || address == AWS
        }
    }
}

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
