// SPDX-License-Identifier: GPL-2.0

//! Path records (IBTA 15.2.5.16) and RoCE routes.

use crate::gid::{
    Gid,
    GidAttr,
    GidType, //
};
use rdma_sys as sys;

/// A path record, all numbers in host order.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Record {
    /// The destination's GID.
    pub dgid: Gid,
    /// The source's GID.
    pub sgid: Gid,
    /// The destination's LID. Not meaningful on RoCE.
    pub dlid: u32,
    /// The source's LID. Not meaningful on RoCE.
    pub slid: u32,
    /// The 20-bit flow label.
    pub flow_label: u32,
    /// The hop limit.
    pub hop_limit: u8,
    /// The traffic class.
    pub traffic_class: u8,
    /// Whether the path is good in both directions.
    pub reversible: bool,
    /// The number of paths asked for or returned.
    pub numb_path: u8,
    /// The P_Key.
    pub pkey: u16,
    /// The service level.
    pub sl: u8,
    /// How `mtu` is meant (`enum ib_sa_selector`).
    pub mtu_selector: u8,
    /// The path MTU, in the encoding of IBTA.
    pub mtu: u8,
    /// How `rate` is meant.
    pub rate_selector: u8,
    /// The static rate, in the encoding of IBTA.
    pub rate: u8,
    /// How `packet_life_time` is meant.
    pub packet_life_time_selector: u8,
    /// The longest life of a packet: 4.096 µs · 2^`packet_life_time`.
    pub packet_life_time: u8,
    /// The preference among paths; 0 is best.
    pub preference: u8,
}

/// What address resolution finds out about the way to a RoCE peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Route {
    /// The MAC address of the next hop.
    pub dmac: [u8; 6],
    /// The hop limit to use.
    pub hop_limit: u8,
}

impl Record {
    /// Makes the C record for a path that starts at `sgid`, with the route if it is RoCE.
    pub(crate) fn to_c(self, sgid: &GidAttr, route: Option<Route>) -> sys::sa_path_rec {
        let mut rec: sys::sa_path_rec = pin_init::zeroed();
        rec.dgid = self.dgid.to_c();
        rec.sgid = self.sgid.to_c();
        rec.flow_label = self.flow_label.to_be();
        rec.hop_limit = self.hop_limit;
        rec.traffic_class = self.traffic_class;
        rec.reversible = u8::from(self.reversible);
        rec.numb_path = self.numb_path;
        rec.pkey = self.pkey.to_be();
        rec.sl = self.sl;
        rec.mtu_selector = self.mtu_selector;
        rec.mtu = self.mtu;
        rec.rate_selector = self.rate_selector;
        rec.rate = self.rate;
        rec.packet_life_time_selector = self.packet_life_time_selector;
        rec.packet_life_time = self.packet_life_time;
        rec.preference = self.preference;
        match sgid.kind() {
            GidType::Ib => {
                rec.rec_type = sys::sa_path_rec_type_SA_PATH_REC_TYPE_IB;
                // CAST: An IB record holds 16-bit LIDs; users give no longer ones.
                rec.__bindgen_anon_1.ib.dlid = (self.dlid as u16).to_be();
                // CAST: As above.
                rec.__bindgen_anon_1.ib.slid = (self.slid as u16).to_be();
            }
            GidType::RoceV1 => rec.rec_type = sys::sa_path_rec_type_SA_PATH_REC_TYPE_ROCE_V1,
            GidType::RoceV2 => rec.rec_type = sys::sa_path_rec_type_SA_PATH_REC_TYPE_ROCE_V2,
        }
        if let Some(route) = route {
            rec.hop_limit = route.hop_limit;
            rec.__bindgen_anon_1.roce = sys::sa_path_rec_roce {
                route_resolved: true,
                dmac: route.dmac,
            };
        }
        rec
    }

    pub(crate) fn from_c(rec: &sys::sa_path_rec) -> Self {
        // SAFETY: `rec_type` says which member of the union is meant; all are plain data.
        let (dlid, slid) = unsafe {
            let lids = &rec.__bindgen_anon_1;
            match rec.rec_type {
                sys::sa_path_rec_type_SA_PATH_REC_TYPE_IB => (
                    u32::from(u16::from_be(lids.ib.dlid)),
                    u32::from(u16::from_be(lids.ib.slid)),
                ),
                sys::sa_path_rec_type_SA_PATH_REC_TYPE_OPA => {
                    (u32::from_be(lids.opa.dlid), u32::from_be(lids.opa.slid))
                }
                _ => (0, 0),
            }
        };
        Self {
            dgid: Gid::from_c(&rec.dgid),
            sgid: Gid::from_c(&rec.sgid),
            dlid,
            slid,
            flow_label: u32::from_be(rec.flow_label),
            hop_limit: rec.hop_limit,
            traffic_class: rec.traffic_class,
            reversible: rec.reversible != 0,
            numb_path: rec.numb_path,
            pkey: u16::from_be(rec.pkey),
            sl: rec.sl,
            mtu_selector: rec.mtu_selector,
            mtu: rec.mtu,
            rate_selector: rec.rate_selector,
            rate: rec.rate,
            packet_life_time_selector: rec.packet_life_time_selector,
            packet_life_time: rec.packet_life_time,
            preference: rec.preference,
        }
    }
}
