// SPDX-License-Identifier: GPL-2.0

//! States of a queue pair, and attributes that change them.

use crate::mr::Access;
use kernel::prelude::*;
use rdma_sys as sys;

/// States of a queue pair (IBTA 10.3.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QpState {
    /// Initialised.
    Init,
    /// Ready to receive.
    Rtr,
    /// Ready to send.
    Rts,
    /// In error.
    Error,
}

impl QpState {
    pub(crate) fn to_c(self) -> sys::ib_qp_state {
        match self {
            Self::Init => sys::ib_qp_state_IB_QPS_INIT,
            Self::Rtr => sys::ib_qp_state_IB_QPS_RTR,
            Self::Rts => sys::ib_qp_state_IB_QPS_RTS,
            Self::Error => sys::ib_qp_state_IB_QPS_ERR,
        }
    }
}

/// Attributes for [`Qp::modify`](super::Qp::modify), with the mask of those that are set.
pub struct Attr {
    pub(crate) attr: sys::ib_qp_attr,
    pub(crate) mask: c_int,
}

impl Attr {
    /// Attributes that ask for a state.
    pub fn to_state(state: QpState) -> Self {
        let mut attr = Self {
            attr: pin_init::zeroed(),
            mask: 0,
        };
        attr.attr.qp_state = state.to_c();
        attr.set(sys::ib_qp_attr_mask_IB_QP_STATE);
        attr
    }

    fn set(&mut self, bit: sys::ib_qp_attr_mask) -> &mut Self {
        // CAST: The mask is an `int` in C.
        self.mask |= bit as c_int;
        self
    }

    /// Sets the first PSN expected (24 bits).
    pub fn rq_psn(&mut self, psn: u32) -> &mut Self {
        self.attr.rq_psn = psn & 0xff_ffff;
        self.set(sys::ib_qp_attr_mask_IB_QP_RQ_PSN)
    }

    /// Sets the first PSN sent (24 bits).
    pub fn sq_psn(&mut self, psn: u32) -> &mut Self {
        self.attr.sq_psn = psn & 0xff_ffff;
        self.set(sys::ib_qp_attr_mask_IB_QP_SQ_PSN)
    }

    /// Sets what the peer and local requests may do.
    pub fn access(&mut self, access: Access) -> &mut Self {
        self.attr.qp_access_flags = access.to_c();
        self.set(sys::ib_qp_attr_mask_IB_QP_ACCESS_FLAGS)
    }

    /// Sets the delay that a missing receive asks of the peer (IBTA table 45; 1 is 0.01 ms).
    pub fn min_rnr_timer(&mut self, timer: u8) -> &mut Self {
        self.attr.min_rnr_timer = timer;
        self.set(sys::ib_qp_attr_mask_IB_QP_MIN_RNR_TIMER)
    }

    /// Sets the index of the P_Key.
    pub fn pkey_index(&mut self, index: u16) -> &mut Self {
        self.attr.pkey_index = index;
        self.set(sys::ib_qp_attr_mask_IB_QP_PKEY_INDEX)
    }

    /// Sets the port.
    pub fn port(&mut self, port: u32) -> &mut Self {
        self.attr.port_num = port;
        self.set(sys::ib_qp_attr_mask_IB_QP_PORT)
    }

    /// Sets the number of the peer's queue pair.
    pub fn dest_qp(&mut self, number: u32) -> &mut Self {
        self.attr.dest_qp_num = number;
        self.set(sys::ib_qp_attr_mask_IB_QP_DEST_QPN)
    }

    /// Sets the path MTU, in the encoding of IBTA.
    pub fn path_mtu(&mut self, mtu: u32) -> &mut Self {
        self.attr.path_mtu = mtu;
        self.set(sys::ib_qp_attr_mask_IB_QP_PATH_MTU)
    }

    /// Sets how many RDMA READs and atomics the peer may have outstanding (for RTR).
    pub fn responder_resources(&mut self, count: u8) -> &mut Self {
        self.attr.max_dest_rd_atomic = count;
        self.set(sys::ib_qp_attr_mask_IB_QP_MAX_DEST_RD_ATOMIC)
    }

    /// Sets how many RDMA READs and atomics may be outstanding to the peer (for RTS).
    pub fn initiator_depth(&mut self, count: u8) -> &mut Self {
        self.attr.max_rd_atomic = count;
        self.set(sys::ib_qp_attr_mask_IB_QP_MAX_QP_RD_ATOMIC)
    }

    /// Sets timeout (4.096 µs · 2^`timeout`, 0 is endless) and retries.
    pub fn retry(&mut self, timeout: u8, retries: u8, rnr_retries: u8) -> &mut Self {
        self.attr.timeout = timeout;
        self.attr.retry_cnt = retries;
        self.attr.rnr_retry = rnr_retries;
        self.set(sys::ib_qp_attr_mask_IB_QP_TIMEOUT)
            .set(sys::ib_qp_attr_mask_IB_QP_RETRY_CNT)
            .set(sys::ib_qp_attr_mask_IB_QP_RNR_RETRY)
    }
}
