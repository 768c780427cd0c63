// SPDX-License-Identifier: GPL-2.0

//! Global identifiers: the 16-byte addresses of ports.

use std::fmt;
use std::net::{
    IpAddr,
    Ipv4Addr,
    Ipv6Addr, //
};
use std::str::FromStr;

use serde::{
    Deserialize,
    Serialize, //
};

/// A GID in network order; for RoCE it is the IPv6 form of an IP address.
///
/// The order is that of the bytes, by which rv decides who listens.
#[derive(Clone, Copy, Default, Eq, Ord, PartialEq, PartialOrd, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct Gid(pub [u8; 16]);

impl Gid {
    /// Tells whether all bytes are 0, which marks an empty table entry.
    pub fn is_zero(&self) -> bool {
        self.0 == [0; 16]
    }

    /// Returns the IP address of a RoCE GID.
    pub fn to_ip(self) -> IpAddr {
        Ipv6Addr::from(self.0).to_canonical()
    }

    /// Returns the IPv4 address that the GID is made from, if it is.
    pub fn to_ipv4(self) -> Option<Ipv4Addr> {
        Ipv6Addr::from(self.0).to_ipv4_mapped()
    }

    /// Tells whether it is a link-local IPv6 address (`fe80::/10`).
    pub fn is_link_local(&self) -> bool {
        self.0[0] == 0xfe && self.0[1] & 0xc0 == 0x80
    }
}

impl From<IpAddr> for Gid {
    fn from(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(v4) => Gid(v4.to_ipv6_mapped().octets()),
            IpAddr::V6(v6) => Gid(v6.octets()),
        }
    }
}

/// The text is not eight groups of four hexadecimal digits.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is no GID")]
pub struct ParseGidError(String);

impl FromStr for Gid {
    type Err = ParseGidError;

    /// Reads the form of sysfs, `0000:0000:0000:0000:0000:ffff:0a09:0001`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || ParseGidError(text.chars().take(64).collect());
        let mut bytes = [0; 16];
        let mut groups = text.split(':');
        for pair in bytes.chunks_exact_mut(2) {
            let group = groups.next().ok_or_else(error)?;
            if group.len() != 4 || !group.bytes().all(|c| c.is_ascii_hexdigit()) {
                return Err(error());
            }
            let value = u16::from_str_radix(group, 16).map_err(|_| error())?;
            pair.copy_from_slice(&value.to_be_bytes());
        }
        match groups.next() {
            None => Ok(Gid(bytes)),
            Some(_) => Err(error()),
        }
    }
}

impl TryFrom<String> for Gid {
    type Error = ParseGidError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Gid> for String {
    fn from(gid: Gid) -> String {
        gid.to_string()
    }
}

impl fmt::Display for Gid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, pair) in self.0.chunks_exact(2).enumerate() {
            let colon = if i == 0 { "" } else { ":" };
            write!(f, "{colon}{:02x}{:02x}", pair[0], pair[1])?;
        }
        Ok(())
    }
}

impl fmt::Debug for Gid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MAPPED: &str = "0000:0000:0000:0000:0000:ffff:0a09:0001";

    #[test]
    fn ipv4_mapped() {
        let gid: Gid = MAPPED.parse().unwrap();
        assert_eq!(gid.to_ipv4(), Some(Ipv4Addr::new(10, 9, 0, 1)));
        assert_eq!(gid.to_ip(), "10.9.0.1".parse::<IpAddr>().unwrap());
        assert_eq!(Gid::from(gid.to_ip()), gid);
        assert_eq!(gid.to_string(), MAPPED);
    }

    #[test]
    fn link_local() {
        let gid: Gid = "fe80:0000:0000:0000:5054:00ff:fe12:3456".parse().unwrap();
        assert!(gid.is_link_local());
        assert_eq!(gid.to_ipv4(), None);
        assert!(!MAPPED.parse::<Gid>().unwrap().is_link_local());
    }

    #[test]
    fn malformed() {
        for text in [
            "",
            "fe80::1",
            "0000:0000:0000:0000:0000:ffff:0a09",
            "0000:0000:0000:0000:0000:ffff:0a09:0001:0000",
            "0000:0000:0000:0000:0000:ffff:0a09:+001",
            "0000:0000:0000:0000:0000:ffff:0a09:00011",
            "0000:0000:0000:0000:0000:ffff:0a09:\u{e9}00",
        ] {
            assert!(text.parse::<Gid>().is_err(), "{text}");
        }
    }

    #[test]
    fn order_is_that_of_the_bytes() {
        let low = Gid::from("10.9.0.1".parse::<IpAddr>().unwrap());
        let high = Gid::from("10.9.0.2".parse::<IpAddr>().unwrap());
        assert!(low < high);
    }

    proptest! {
        #[test]
        fn text_round_trip(bytes: [u8; 16]) {
            let gid = Gid(bytes);
            prop_assert_eq!(gid.to_string().parse::<Gid>().unwrap(), gid);
        }

        #[test]
        fn any_text_is_answered(text: String) {
            let _ = text.parse::<Gid>();
        }
    }
}
