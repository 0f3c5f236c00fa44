//! What kind of address an address is.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Addresses at which clouds give credentials to the machine that asks, beside those of the link.
const METADATA: [IpAddr; 4] = [
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),
    IpAddr::V4(Ipv4Addr::new(192, 0, 0, 192)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
];

/// The kind of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressKind {
    /// An address of the internet.
    Public,
    /// An address of a private network: RFC 1918, the shared addresses of carriers (RFC 6598), unique local ones of IPv6.
    Private,
    /// This machine.
    Loopback,
    /// An address of the link, or one at which a cloud gives credentials.
    Link,
    /// No single server has it: the unspecified address, multicast, broadcast, reserved ones.
    Unusable,
}

impl AddressKind {
    /// The kind of an address. An IPv4 address within one of IPv6 counts as what it is.
    pub fn of(address: IpAddr) -> Self {
        let address = address.to_canonical();
        if METADATA.contains(&address) {
            return Self::Link;
        }
        match address {
            IpAddr::V4(address) => of_v4(address),
            IpAddr::V6(address) => of_v6(address),
        }
    }

    /// The kind in words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Public => "an address of the internet",
            Self::Private => "an address of a private network",
            Self::Loopback => "this machine",
            Self::Link => "an address of the link or of a cloud's metadata",
            Self::Unusable => "an address that no server has",
        }
    }
}

fn of_v4(address: Ipv4Addr) -> AddressKind {
    let [first, second, ..] = address.octets();
    match (first, second) {
        (0 | 224..=255, _) => AddressKind::Unusable,
        (127, _) => AddressKind::Loopback,
        (169, 254) => AddressKind::Link,
        (10, _) | (172, 16..=31) | (192, 168) | (100, 64..=127) => AddressKind::Private,
        _ => AddressKind::Public,
    }
}

fn of_v6(address: Ipv6Addr) -> AddressKind {
    let segments = address.segments();
    match segments {
        [0, 0, 0, 0, 0, 0, 0, 0] => AddressKind::Unusable,
        [0, 0, 0, 0, 0, 0, 0, 1] => AddressKind::Loopback,
        // Forms that carry an IPv4 address: compatible, translated (RFC 6052), 6to4.
        [0, 0, 0, 0, 0, 0, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => embedded(high, low),
        [0x2002, high, low, ..] => embedded(high, low),
        [0xfe80..=0xfebf, ..] => AddressKind::Link,
        [0xfc00..=0xfdff, ..] | [0xfec0..=0xfeff, ..] => AddressKind::Private,
        [0xff00..=0xffff, ..] => AddressKind::Unusable,
        _ => AddressKind::Public,
    }
}

fn embedded(high: u16, low: u16) -> AddressKind {
    AddressKind::of(IpAddr::V4(Ipv4Addr::from(u32::from(high) << 16 | u32::from(low))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_address_has_a_kind() {
        for (text, kind) in [
            ("203.0.113.1", AddressKind::Public),
            ("172.32.0.1", AddressKind::Public),
            ("100.128.0.1", AddressKind::Public),
            ("2001:db8::1", AddressKind::Public),
            ("10.0.0.1", AddressKind::Private),
            ("172.16.0.1", AddressKind::Private),
            ("172.31.255.255", AddressKind::Private),
            ("192.168.1.1", AddressKind::Private),
            ("100.64.0.1", AddressKind::Private),
            ("fd12::1", AddressKind::Private),
            ("fec0::1", AddressKind::Private),
            ("127.0.0.1", AddressKind::Loopback),
            ("127.255.0.1", AddressKind::Loopback),
            ("::1", AddressKind::Loopback),
            ("::ffff:127.0.0.1", AddressKind::Loopback),
            ("::127.0.0.1", AddressKind::Loopback),
            ("64:ff9b::127.0.0.1", AddressKind::Loopback),
            ("2002:7f00:1::", AddressKind::Loopback),
            ("169.254.169.254", AddressKind::Link),
            ("::ffff:169.254.169.254", AddressKind::Link),
            ("2002:a9fe:a9fe::", AddressKind::Link),
            ("fe80::1", AddressKind::Link),
            ("febf::1", AddressKind::Link),
            ("fd00:ec2::254", AddressKind::Link),
            ("100.100.100.200", AddressKind::Link),
            ("168.63.129.16", AddressKind::Link),
            ("0.0.0.0", AddressKind::Unusable),
            ("0.1.2.3", AddressKind::Unusable),
            ("::", AddressKind::Unusable),
            ("224.0.0.1", AddressKind::Unusable),
            ("240.0.0.1", AddressKind::Unusable),
            ("255.255.255.255", AddressKind::Unusable),
            ("ff02::1", AddressKind::Unusable),
        ] {
            assert_eq!(AddressKind::of(text.parse().unwrap()), kind, "{text}");
        }
    }
}
