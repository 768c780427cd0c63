// SPDX-License-Identifier: GPL-2.0

//! Address vectors of queue pairs that are connected without a connection manager.

use crate::{
    device::Device,
    qp::Attr, //
};
use kernel::{
    error::to_result,
    prelude::*, //
};
use rdma_sys as sys;

/// Hops that a packet to oneself may take: as many as there are.
const HOP_LIMIT: u8 = 255;

impl Attr {
    /// Sets the address of port `port` of `device` itself, for a queue pair whose peer is on the
    /// same port. On RoCE the port's GID at `gid_index` is used.
    ///
    /// # Context
    ///
    /// May sleep.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the port does not exist, `ENOENT` if it has no such GID, `ENODEV` if the GID's
    /// network device is gone; else the driver's error.
    pub fn address_self(
        &mut self,
        device: &Device,
        port: u32,
        gid_index: u16,
    ) -> Result<&mut Self> {
        let ah = &mut self.attr.ah_attr;
        ah.port_num = port;
        if device.is_roce(port) {
            let gid = device.gid(port, gid_index)?;
            let mut dmac = [0; 6];
            // SAFETY: The attribute is referenced, and `dmac` has room for a MAC address.
            to_result(unsafe {
                sys::rdma_read_gid_l2_fields(gid.as_raw(), core::ptr::null_mut(), dmac.as_mut_ptr())
            })?;
            ah.type_ = sys::rdma_ah_attr_type_RDMA_AH_ATTR_TYPE_ROCE;
            // CAST: A flag of C.
            ah.ah_flags = sys::ib_ah_flags_IB_AH_GRH as u8;
            ah.grh.dgid = gid.gid().to_c();
            // By its index, so that the core takes the reference it needs by itself.
            ah.grh.sgid_index = u8::try_from(gid_index)?;
            ah.grh.hop_limit = HOP_LIMIT;
            ah.__bindgen_anon_1.roce = sys::roce_ah_attr { dmac };
        } else {
            let lid = device.query_port(port)?.lid;
            if device.is_opa(port) {
                ah.type_ = sys::rdma_ah_attr_type_RDMA_AH_ATTR_TYPE_OPA;
                ah.__bindgen_anon_1.opa.dlid = lid;
            } else {
                ah.type_ = sys::rdma_ah_attr_type_RDMA_AH_ATTR_TYPE_IB;
                ah.__bindgen_anon_1.ib.dlid = u16::try_from(lid)?;
            }
        }
        // CAST: The mask is an `int` in C.
        self.mask |= sys::ib_qp_attr_mask_IB_QP_AV as c_int;
        Ok(self)
    }
}
