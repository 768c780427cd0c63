// SPDX-License-Identifier: GPL-2.0

//! Addresses of nodes, and the way from one to another.
//!
//! The values are those that PSM3 fills in, so that both can share a connection.

use serde::{
    Deserialize,
    Serialize, //
};

use crate::abi;
use crate::error::{
    Error,
    Result, //
};
use crate::gid::Gid;

/// A selector of a path record: the value is exact.
const EXACTLY: u8 = 2;
/// 4.096 us * 2^16: about a quarter of a second.
const PACKET_LIFE_TIME: u8 = 16;
/// RoCE has no LIDs; rv wants some value that is not 0.
const ROCE_LID: u16 = 1;

/// What kind of link a port has.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub enum LinkLayer {
    /// RoCE: addressed by GID.
    Ethernet,
    /// InfiniBand or Omni-Path: addressed by LID.
    InfiniBand,
}

/// Which side of a connection listens.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub enum Role {
    /// This node listens: it has the lower address.
    Listener,
    /// This node connects.
    Connector,
}

/// One port of one node, as the other nodes need to know it.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Endpoint {
    /// Name of the RDMA device.
    pub device: String,
    /// Port of the device, from 1.
    pub port: u8,
    /// Kind of link.
    pub link_layer: LinkLayer,
    /// Place of `gid` in the port's table.
    pub gid_index: u16,
    /// Address on Ethernet.
    pub gid: Gid,
    /// Address on InfiniBand.
    pub lid: u16,
    /// Speed of the port, as the verbs number it (`enum ib_rate`).
    pub rate: u8,
    /// Largest packet of the port, as the verbs number it: 1 is 256 bytes, 5 is 4096.
    pub mtu: u8,
    /// Partition key.
    pub pkey: u16,
}

impl Endpoint {
    /// Returns the address as a 32-bit number: the low part of the GID, or the LID.
    pub fn number(&self) -> u32 {
        match self.link_layer {
            LinkLayer::Ethernet => {
                let [.., a, b, c, d] = self.gid.0;
                u32::from_be_bytes([a, b, c, d])
            }
            LinkLayer::InfiniBand => self.lid.into(),
        }
    }

    /// Tells which side of the connection to `remote` this node is, by the rule of rv.
    pub fn role(&self, remote: &Endpoint) -> Role {
        let lower = match self.link_layer {
            LinkLayer::Ethernet => self.gid < remote.gid,
            LinkLayer::InfiniBand => self.number() < remote.number(),
        };
        if lower {
            Role::Listener
        } else {
            Role::Connector
        }
    }

    /// Checks what a peer said about itself before it is used.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] for values that cannot be, or that do not fit to this node.
    pub fn check_remote(&self, remote: &Endpoint) -> Result<()> {
        let error = |text: String| Err(Error::Argument(text));
        if remote.link_layer != self.link_layer {
            return error(format!(
                "{} has an {:?} link, the peer's {} an {:?} link: they cannot be connected",
                self.device, self.link_layer, remote.device, remote.link_layer
            ));
        }
        match self.link_layer {
            LinkLayer::Ethernet if remote.gid.is_zero() => error("the peer sent no GID".into()),
            LinkLayer::InfiniBand if remote.lid == 0 => error("the peer sent no LID".into()),
            _ if self.number() == remote.number() && self.gid == remote.gid => error(format!(
                "both sides use the same port ({}): rv connects different nodes only",
                self.gid
            )),
            _ if !(1..=5).contains(&remote.mtu) => {
                error(format!("the peer sent the MTU code {}", remote.mtu))
            }
            _ => Ok(()),
        }
    }

    /// Fills the address attributes for `CONN_CREATE`.
    pub(crate) fn ah_to(&self, remote: &Endpoint) -> Result<abi::ib_uverbs_ah_attr> {
        let mut ah = abi::ib_uverbs_ah_attr {
            static_rate: slower(self.rate, remote.rate),
            port_num: self.port,
            ..Default::default()
        };
        match self.link_layer {
            LinkLayer::Ethernet => {
                ah.is_global = 1;
                ah.grh.dgid = remote.gid.0;
                ah.grh.sgid_index = self.short_gid_index()?;
                ah.grh.hop_limit = u8::MAX;
                ah.dlid = ROCE_LID;
                ah.src_path_bits = 1;
            }
            LinkLayer::InfiniBand => ah.dlid = remote.lid,
        }
        Ok(ah)
    }

    /// Fills the path record for `CONN_CONNECT`.
    pub(crate) fn path_to(&self, remote: &Endpoint) -> abi::ib_user_path_rec {
        let (slid, dlid, hop_limit) = match self.link_layer {
            LinkLayer::Ethernet => (ROCE_LID, ROCE_LID, u8::MAX),
            LinkLayer::InfiniBand => (self.lid, remote.lid, 0),
        };
        abi::ib_user_path_rec {
            dgid: remote.gid.0,
            sgid: self.gid.0,
            dlid: dlid.to_be(),
            slid: slid.to_be(),
            reversible: 1,
            mtu: self.mtu.min(remote.mtu).into(),
            pkey: self.pkey.to_be(),
            hop_limit,
            numb_path: 1,
            mtu_selector: EXACTLY,
            rate_selector: EXACTLY,
            rate: slower(self.rate, remote.rate),
            packet_life_time_selector: EXACTLY,
            packet_life_time: PACKET_LIFE_TIME,
            ..Default::default()
        }
    }

    /// Returns the GID index in the 8 bits that address attributes have for it.
    fn short_gid_index(&self) -> Result<u8> {
        u8::try_from(self.gid_index).map_err(|_| {
            Error::Argument(format!("GID index {}: at most 255 works", self.gid_index))
        })
    }

    /// A RoCE port with the address 10.9.0.`host`.
    #[cfg(test)]
    pub(crate) fn sample(host: u8) -> Self {
        let address = std::net::IpAddr::from([10, 9, 0, host]);
        Self {
            device: "rxe0".into(),
            port: 1,
            link_layer: LinkLayer::Ethernet,
            gid_index: 1,
            gid: Gid::from(address),
            lid: 0,
            rate: 2,
            mtu: 5,
            pkey: 0xffff,
        }
    }
}

/// Speeds in tenths of Gbit/s and their codes, slowest first.
const RATES: [(u32, u8); 22] = [
    (25, 2),
    (50, 5),
    (100, 3),
    (140, 11),
    (200, 6),
    (250, 15),
    (280, 19),
    (300, 4),
    (400, 7),
    (500, 20),
    (560, 12),
    (600, 8),
    (800, 9),
    (1000, 16),
    (1120, 13),
    (1200, 10),
    (1680, 14),
    (2000, 17),
    (3000, 18),
    (4000, 21),
    (6000, 22),
    (8000, 23),
];

/// Returns the code of the fastest speed that is not above `tenths` of Gbit/s.
pub(crate) fn rate_code(tenths: u32) -> u8 {
    let known = RATES.iter().rev().find(|(speed, _)| *speed <= tenths);
    known.map_or(RATES[0].1, |(_, code)| *code)
}

/// Returns the code of the slower of two speeds; a code that is not known counts as slowest.
fn slower(a: u8, b: u8) -> u8 {
    let place = |code| RATES.iter().position(|(_, known)| *known == code);
    match (place(a), place(b)) {
        (Some(x), Some(y)) => RATES[x.min(y)].1,
        _ => RATES[0].1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lower_gid_listens() {
        let (low, high) = (Endpoint::sample(1), Endpoint::sample(2));
        assert_eq!(low.role(&high), Role::Listener);
        assert_eq!(high.role(&low), Role::Connector);
    }

    #[test]
    fn lower_lid_listens() {
        let lid = |lid| Endpoint {
            link_layer: LinkLayer::InfiniBand,
            lid,
            ..Endpoint::sample(9)
        };
        assert_eq!(lid(3).role(&lid(4)), Role::Listener);
        assert_eq!(lid(4).role(&lid(3)), Role::Connector);
    }

    #[test]
    fn roce_path_as_psm3() {
        let path = Endpoint::sample(1).path_to(&Endpoint::sample(2));
        assert_eq!(path.sgid, Endpoint::sample(1).gid.0);
        assert_eq!(path.dgid, Endpoint::sample(2).gid.0);
        assert_eq!((path.dlid, path.slid), (0x0100, 0x0100));
        assert_eq!((path.reversible, path.numb_path), (1, 1));
        assert_eq!((path.mtu, path.mtu_selector), (5, 2));
        assert_eq!((path.rate, path.rate_selector), (2, 2));
        assert_eq!(
            (path.packet_life_time, path.packet_life_time_selector),
            (16, 2)
        );
        assert_eq!((path.hop_limit, path.pkey), (255, 0xffff));
        assert_eq!((path.sl, path.traffic_class, path.flow_label), (0, 0, 0));
    }

    #[test]
    fn roce_address_as_psm3() {
        let ah = Endpoint::sample(1).ah_to(&Endpoint::sample(2)).unwrap();
        assert_eq!(ah.grh.dgid, Endpoint::sample(2).gid.0);
        assert_eq!((ah.grh.sgid_index, ah.grh.hop_limit), (1, 255));
        assert_eq!((ah.is_global, ah.dlid, ah.src_path_bits), (1, 1, 1));
        assert_eq!((ah.static_rate, ah.port_num, ah.sl), (2, 1, 0));
    }

    #[test]
    fn infiniband_is_addressed_by_lid() {
        let lid = |lid| Endpoint {
            link_layer: LinkLayer::InfiniBand,
            lid,
            ..Endpoint::sample(9)
        };
        let ah = lid(3).ah_to(&lid(4)).unwrap();
        assert_eq!((ah.is_global, ah.dlid), (0, 4));
        let path = lid(3).path_to(&lid(4));
        assert_eq!((path.slid, path.dlid), (3_u16.to_be(), 4_u16.to_be()));
    }

    #[test]
    fn the_weaker_port_decides() {
        let strong = Endpoint {
            rate: 16,
            mtu: 5,
            ..Endpoint::sample(1)
        };
        let weak = Endpoint {
            rate: 3,
            mtu: 3,
            ..Endpoint::sample(2)
        };
        for path in [strong.path_to(&weak), weak.path_to(&strong)] {
            assert_eq!((path.rate, path.mtu), (3, 3));
        }
        let unknown = Endpoint {
            rate: 99,
            ..Endpoint::sample(2)
        };
        assert_eq!(strong.path_to(&unknown).rate, 2);
    }

    #[test]
    fn rates() {
        assert_eq!(rate_code(25), 2);
        assert_eq!(rate_code(1000), 16);
        assert_eq!(rate_code(1100), 16);
        assert_eq!(rate_code(0), 2);
        assert!(RATES.windows(2).all(|pair| pair[0].0 < pair[1].0));
    }

    #[test]
    fn a_peer_that_makes_no_sense_is_refused() {
        let local = Endpoint::sample(1);
        let good = Endpoint::sample(2);
        assert!(local.check_remote(&good).is_ok());
        let bad = [
            Endpoint {
                gid: Gid::default(),
                ..good.clone()
            },
            Endpoint {
                mtu: 6,
                ..good.clone()
            },
            Endpoint {
                link_layer: LinkLayer::InfiniBand,
                ..good.clone()
            },
            local.clone(),
        ];
        for remote in bad {
            assert!(local.check_remote(&remote).is_err(), "{remote:?}");
        }
    }

    #[test]
    fn large_gid_index() {
        let local = Endpoint {
            gid_index: 256,
            ..Endpoint::sample(1)
        };
        assert!(local.ah_to(&Endpoint::sample(2)).is_err());
    }
}
