// SPDX-License-Identifier: GPL-2.0

//! Global identifiers and entries of a port's GID table.

use crate::device::Device;
use core::ptr::NonNull;
use kernel::{
    error::from_err_ptr,
    prelude::*, //
};
use rdma_sys as sys;

/// A 128-bit global identifier, in network order (IBTA 4.1.1). Its order is that of its bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
#[repr(transparent)]
pub struct Gid(pub [u8; 16]);

impl Gid {
    pub(crate) fn to_c(self) -> sys::ib_gid {
        sys::ib_gid { raw: self.0 }
    }

    pub(crate) fn from_c(gid: &sys::ib_gid) -> Self {
        // SAFETY: Every view of the union is 16 bytes of plain data.
        Self(unsafe { gid.raw })
    }
}

/// How packets with a GID are carried (`enum ib_gid_type`).
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum GidType {
    /// InfiniBand, Omni-Path.
    Ib,
    /// RoCE version 1.
    RoceV1,
    /// RoCE version 2, over UDP.
    RoceV2,
}

/// A counted reference to an entry of a port's GID table.
///
/// # Invariants
///
/// `raw` holds a reference to a GID attribute of `device`.
pub struct GidAttr {
    raw: NonNull<sys::ib_gid_attr>,
    _device: Device,
}

// SAFETY: The reference may be put from any task.
unsafe impl Send for GidAttr {}
// SAFETY: A GID attribute does not change while a reference is held.
unsafe impl Sync for GidAttr {}

impl GidAttr {
    pub(crate) fn get(device: &Device, port: u32, index: u16) -> Result<Self> {
        // SAFETY: The device is registered, see `Device`.
        let raw = from_err_ptr(unsafe {
            sys::rdma_get_gid_attr(device.as_raw(), port, i32::from(index)).cast_mut()
        })?;
        // INVARIANT: `rdma_get_gid_attr()` returned a reference.
        Ok(Self {
            raw: NonNull::new(raw).ok_or(ENOENT)?,
            _device: device.clone(),
        })
    }

    pub(crate) fn as_raw(&self) -> *const sys::ib_gid_attr {
        self.raw.as_ptr()
    }

    fn raw(&self) -> &sys::ib_gid_attr {
        // SAFETY: The reference is held by the type invariant.
        unsafe { self.raw.as_ref() }
    }

    /// The GID.
    pub fn gid(&self) -> Gid {
        Gid::from_c(&self.raw().gid)
    }

    /// How packets with this GID are carried.
    pub fn kind(&self) -> GidType {
        match self.raw().gid_type {
            sys::ib_gid_type_IB_GID_TYPE_ROCE => GidType::RoceV1,
            sys::ib_gid_type_IB_GID_TYPE_ROCE_UDP_ENCAP => GidType::RoceV2,
            _ => GidType::Ib,
        }
    }
}

impl Drop for GidAttr {
    fn drop(&mut self) {
        // SAFETY: The reference is held by the type invariant and given up here.
        unsafe { sys::rdma_put_gid_attr(self.raw.as_ptr()) };
    }
}
