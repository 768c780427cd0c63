// SPDX-License-Identifier: GPL-2.0

//! RDMA devices as a client sees them.
//!
//! A [`Device`] is a lease. Everything made on a device (PD, CQ, QP, MR, CM id, GID reference) holds
//! one, and [`client::Registration`] does not let the device go before the last of them is gone. So
//! no object outlives its `struct ib_device`, and none needs to check.
//!
//! [`client::Registration`]: crate::client::Registration

use crate::{
    gid::{
        Gid,
        GidAttr, //
    },
    lease::{
        Lease,
        Owner, //
    }, //
};
use core::ptr::NonNull;
use kernel::{
    error::to_result,
    prelude::*,
    str::CStrExt, //
};
use rdma_sys as sys;

/// A device that the core has told a client of.
///
/// # Invariants
///
/// The device is registered as long as there is a [`Device`].
pub(crate) struct Registered(NonNull<sys::ib_device>);

// SAFETY: The RDMA core allows its verbs on a device from any task.
unsafe impl Send for Registered {}
// SAFETY: Every RDMA core operation on a device is re-entrant
// (Documentation/infiniband/core_locking.rst).
unsafe impl Sync for Registered {}

impl Registered {
    /// Takes note of a device, for a client that is being told of it.
    ///
    /// # Safety
    ///
    /// `raw` must stay registered until the owner has been dropped.
    pub(crate) unsafe fn new(raw: NonNull<sys::ib_device>) -> Result<Owner<Self>> {
        // INVARIANT: Registered by the caller's promise.
        Owner::new(Self(raw))
    }
}

/// A reference to an RDMA device, which cannot go as long as there is one.
#[derive(Clone)]
pub struct Device {
    lease: Lease<Registered>,
}

/// The driver behind a device (`enum rdma_driver_id`).
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct DriverId(pub(crate) sys::rdma_driver_id);

/// Attributes of a port.
#[derive(Clone, Copy)]
pub struct PortAttr {
    /// Whether the port is ACTIVE.
    pub active: bool,
    /// The MTU in use, in the encoding of IBTA (1 = 256 bytes … 5 = 4096 bytes).
    pub active_mtu: u32,
    /// The largest message, in bytes.
    pub max_msg_sz: u32,
    /// The local identifier; 0 on RoCE.
    pub lid: u32,
}

impl Device {
    pub(crate) fn new(lease: Lease<Registered>) -> Self {
        Self { lease }
    }

    pub(crate) fn as_raw(&self) -> *mut sys::ib_device {
        self.lease.0.as_ptr()
    }

    fn raw(&self) -> &sys::ib_device {
        // SAFETY: Registered by the type invariant of `Registered`. The fields read through this
        // reference are constant while a device is registered.
        unsafe { self.lease.0.as_ref() }
    }

    /// Returns whether both references are to the same device.
    pub fn is_same(&self, other: &Self) -> bool {
        self.lease.is_same(&other.lease)
    }

    /// Copies the device's present name into `buf`, cut to fit, with a NUL at its end.
    ///
    /// To be called from [`Client::add`] and [`Client::renamed`] only, during which the name
    /// cannot change.
    ///
    /// [`Client::add`]: crate::client::Client::add
    /// [`Client::renamed`]: crate::client::Client::renamed
    pub fn copy_name(&self, buf: &mut [u8; Self::NAME_LEN]) {
        // SAFETY: `dev_name()` of a registered device is a valid string; the caller runs in a
        // client callback, which the core serialises against renames.
        let name = unsafe { CStr::from_char_ptr(sys::dev_name(self.as_raw())) };
        buf.fill(0);
        for (to, from) in buf[..Self::NAME_LEN - 1].iter_mut().zip(name.to_bytes()) {
            *to = *from;
        }
    }

    /// The size of a device name with its NUL (`IB_DEVICE_NAME_MAX`).
    pub const NAME_LEN: usize = 64;

    /// The driver behind the device.
    pub fn driver(&self) -> DriverId {
        DriverId(self.raw().ops.driver_id)
    }

    /// The number of ports; the first is 1.
    pub fn port_count(&self) -> u32 {
        self.raw().phys_port_cnt
    }

    /// The number of pages that one fast registration can map; 0 if the device has none.
    pub fn max_fast_reg_pages(&self) -> u32 {
        self.raw().attrs.max_fast_reg_page_list_len
    }

    /// The number of work requests that one queue of a queue pair can hold.
    pub fn max_qp_wr(&self) -> u32 {
        self.raw().attrs.max_qp_wr
    }

    /// Returns whether the device has port `port` (the first is 1).
    pub fn has_port(&self, port: u32) -> bool {
        // SAFETY: Registered, see `Registered`.
        unsafe { sys::rdma_is_port_valid(self.as_raw(), port) }
    }

    /// Returns whether port `port` runs RoCE. `false` for a port that does not exist.
    pub fn is_roce(&self, port: u32) -> bool {
        // SAFETY: Registered, see `Registered`; the port was checked.
        self.has_port(port) && unsafe { sys::rdma_protocol_roce(self.as_raw(), port) }
    }

    /// Returns whether port `port` has Omni-Path addresses (LIDs of more than 16 bits).
    pub fn is_opa(&self, port: u32) -> bool {
        // SAFETY: Registered, see `Registered`; the port was checked.
        self.has_port(port) && unsafe { sys::rdma_cap_opa_ah(self.as_raw(), port) }
    }

    /// Returns whether port `port` can use the IB connection manager.
    pub fn has_ib_cm(&self, port: u32) -> bool {
        // SAFETY: Registered, see `Registered`; the port was checked.
        self.has_port(port) && unsafe { sys::rdma_cap_ib_cm(self.as_raw(), port) }
    }

    /// Returns whether the calling task's network namespace may use the device.
    ///
    /// # Context
    ///
    /// Process context of a user task.
    pub fn accessible(&self) -> bool {
        // SAFETY: Registered, see `Registered`.
        unsafe { sys::rdma_dev_access_current_netns(self.as_raw()) }
    }

    /// Queries port `port`.
    ///
    /// # Context
    ///
    /// May sleep.
    ///
    /// # Errors
    ///
    /// `EINVAL` for a port that does not exist; else the driver's error.
    pub fn query_port(&self, port: u32) -> Result<PortAttr> {
        let mut attr: sys::ib_port_attr = pin_init::zeroed();
        // SAFETY: Registered, see `Registered`; `attr` is writable.
        to_result(unsafe { sys::ib_query_port(self.as_raw(), port, &mut attr) })?;
        Ok(PortAttr {
            active: attr.state == sys::ib_port_state_IB_PORT_ACTIVE,
            active_mtu: attr.active_mtu,
            max_msg_sz: attr.max_msg_sz,
            lid: attr.lid,
        })
    }

    /// Takes a reference to the GID at `index` of `port`'s table.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the port does not exist, `ENOENT` if there is no GID at this index.
    pub fn gid(&self, port: u32, index: u16) -> Result<GidAttr> {
        if !self.has_port(port) {
            return Err(EINVAL);
        }
        GidAttr::get(self, port, index).map_err(|_| ENOENT)
    }

    /// Returns whether port `port` has `gid` at `index` of its table.
    ///
    /// # Errors
    ///
    /// As [`Device::gid`].
    pub fn gid_is(&self, port: u32, index: u16, gid: &Gid) -> Result<bool> {
        Ok(self.gid(port, index)?.gid() == *gid)
    }
}
