// SPDX-License-Identifier: GPL-2.0

//! Work completions (IBTA 11.4.2.1).

use rdma_sys as sys;

/// How a work request ended (`enum ib_wc_status`; the numbers are part of user-space interfaces).
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Status(u32);

impl Status {
    /// It did what it was asked to.
    pub const SUCCESS: Self = Self(sys::ib_wc_status_IB_WC_SUCCESS);
    /// The queue pair was in error before the request was carried out.
    pub const FLUSHED: Self = Self(sys::ib_wc_status_IB_WC_WR_FLUSH_ERR);

    /// The number of the status.
    pub fn number(self) -> u32 {
        self.0
    }
}

/// What kind of work a completion is of, as far as users tell them apart.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Opcode {
    /// A receive that a SEND has used.
    Recv,
    /// A receive that an RDMA WRITE with immediate has used.
    RecvRdmaWithImm,
    /// Any other.
    Other,
}

/// A work completion, without the identity of its work request: that comes back as the value that
/// was posted with it.
#[derive(Clone, Copy)]
pub struct Wc {
    /// How the request ended.
    pub status: Status,
    /// What kind of request it was. Only meaningful with [`Status::SUCCESS`].
    pub opcode: Opcode,
    /// Bytes received. Only meaningful for receives with [`Status::SUCCESS`].
    pub byte_len: u32,
    /// The immediate data that came with it, in host order.
    pub imm: Option<u32>,
    /// The driver's own error number.
    pub vendor_err: u32,
}

impl Wc {
    /// The completion of a request that the hardware never completed.
    pub(crate) const FLUSHED: Self = Self {
        status: Status::FLUSHED,
        opcode: Opcode::Other,
        byte_len: 0,
        imm: None,
        vendor_err: 0,
    };

    /// Returns whether the request ended well.
    pub fn is_ok(&self) -> bool {
        self.status == Status::SUCCESS
    }

    pub(crate) fn from_c(wc: &sys::ib_wc) -> Self {
        let opcode = match wc.opcode {
            sys::ib_wc_opcode_IB_WC_RECV => Opcode::Recv,
            sys::ib_wc_opcode_IB_WC_RECV_RDMA_WITH_IMM => Opcode::RecvRdmaWithImm,
            _ => Opcode::Other,
        };
        // CAST: Flags of C, of which one bit is looked at.
        let with_imm = wc.wc_flags as u32 & sys::ib_wc_flags_IB_WC_WITH_IMM != 0;
        Self {
            status: Status(wc.status),
            opcode,
            byte_len: wc.byte_len,
            imm: with_imm.then(|| {
                // SAFETY: `IB_WC_WITH_IMM` says which member of the union is set; both are plain
                // 32-bit numbers.
                u32::from_be(unsafe { wc.ex.imm_data })
            }),
            vendor_err: wc.vendor_err,
        }
    }
}
