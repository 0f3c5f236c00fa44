//! Networks of addresses, such as those of load balancers.

use std::net::IpAddr;
use std::str::FromStr;

/// A list of networks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Networks(Vec<Network>);

/// A text is not a network.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "an address or a network such as 10.0.0.0/8 or 2001:db8::/32 is expected, with no bits set after the prefix"
)]
pub struct NetworkError;

/// All addresses that begin with the same bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    prefix_bits: u32,
}

impl Networks {
    /// Whether an address is in one of the networks. An IPv4 address in the form of IPv6 counts as IPv4.
    pub fn contain(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|network| network.contains(address))
    }
}

impl Networks {
    /// Reads networks such as `10.0.0.0/8` and single addresses.
    ///
    /// # Errors
    /// The first text that is not a network.
    pub fn parse<'a>(texts: impl IntoIterator<Item = &'a str>) -> Result<Self, (&'a str, NetworkError)> {
        let read = |text: &'a str| text.parse().map_err(|error| (text, error));
        texts.into_iter().map(read).collect::<Result<_, _>>().map(Self)
    }
}

impl Network {
    /// The address with zeros after the prefix.
    fn first_address(self) -> IpAddr {
        match self.address {
            IpAddr::V4(address) => {
                let rest = u32::MAX.checked_shr(self.prefix_bits).unwrap_or(0);
                IpAddr::V4((address.to_bits() & !rest).into())
            }
            IpAddr::V6(address) => {
                let rest = u128::MAX.checked_shr(self.prefix_bits).unwrap_or(0);
                IpAddr::V6((address.to_bits() & !rest).into())
            }
        }
    }

    /// Whether an address is in the network. An IPv4 address in the form of IPv6 is not in one of IPv4: make it canonical.
    pub fn contains(self, address: IpAddr) -> bool {
        match (self.address, address) {
            (IpAddr::V4(network), IpAddr::V4(address)) => {
                (network.to_bits() ^ address.to_bits()).checked_shr(32 - self.prefix_bits).unwrap_or(0) == 0
            }
            (IpAddr::V6(network), IpAddr::V6(address)) => {
                (network.to_bits() ^ address.to_bits()).checked_shr(128 - self.prefix_bits).unwrap_or(0) == 0
            }
            _ => false,
        }
    }
}

impl FromStr for Network {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<Self, NetworkError> {
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| NetworkError)?;
        let bits = if address.is_ipv4() { 32 } else { 128 };
        let prefix_bits = match prefix {
            None => Some(bits),
            // `parse` of a number takes a sign, which no network has.
            Some(prefix) if prefix.starts_with('+') => None,
            Some(prefix) => prefix.parse().ok().filter(|prefix| *prefix <= bits),
        };
        let network = Self { address, prefix_bits: prefix_bits.ok_or(NetworkError)? };
        // A set bit after the prefix is probably a mistake in one of the two.
        (network.first_address() == address).then_some(network).ok_or(NetworkError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contain(networks: &[&str], address: &str) -> bool {
        Networks::parse(networks.iter().copied()).unwrap().contain(address.parse().unwrap())
    }

    #[test]
    fn an_address_is_in_a_network_with_the_same_prefix() {
        let networks = ["10.0.0.0/8", "192.0.2.7", "2001:db8::/32"];
        for inside in ["10.255.0.1", "::ffff:10.0.0.1", "192.0.2.7", "2001:db8:ffff::1"] {
            assert!(contain(&networks, inside), "{inside}");
        }
        for outside in ["11.0.0.1", "192.0.2.6", "2001:db9::1", "::1"] {
            assert!(!contain(&networks, outside), "{outside}");
        }
        assert!(contain(&["0.0.0.0/0"], "203.0.113.1") && !contain(&["0.0.0.0/0"], "::1"));
        assert!(contain(&["::/0"], "::1") && !contain(&[], "127.0.0.1"));
    }

    #[test]
    fn a_wrong_network_is_refused() {
        for wrong in
            ["", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/+8", "10.0.0.1/8", "::1/64", "::/129", "host", "10/8"]
        {
            assert_eq!(Networks::parse([wrong]).unwrap_err().0, wrong);
        }
    }
}
