// SPDX-License-Identifier: GPL-2.0

//! Pinned memory of a user process, mapped for a device.

use crate::{
    device::Device,
    mr::Access, //
};
use core::ptr::NonNull;
use kernel::{
    bindings,
    error::from_err_ptr,
    prelude::*, //
};
use rdma_sys as sys;

/// Pinned pages of a user process.
///
/// They count against the process's RLIMIT_MEMLOCK until dropped.
///
/// # Invariants
///
/// `raw` is ours to release.
pub struct Umem {
    raw: NonNull<sys::ib_umem>,
    _device: Device,
}

// SAFETY: Pinned pages may be released from any task.
unsafe impl Send for Umem {}
// SAFETY: Shared references only read fields that do not change.
unsafe impl Sync for Umem {}

impl Umem {
    /// Pins `len` bytes at `addr` of the calling process for `access`.
    ///
    /// # Context
    ///
    /// Sleeps. In the context of the process that owns the memory.
    ///
    /// # Errors
    ///
    /// `EINVAL` for a range that is empty or wraps; `EFAULT` for addresses that cannot be pinned
    /// for this access; `ENOMEM` beyond RLIMIT_MEMLOCK or without memory; `EPERM` if nothing may be
    /// locked.
    pub fn pin(device: &Device, addr: u64, len: u64, access: Access) -> Result<Self> {
        let addr = c_ulong::try_from(addr)?;
        let len = usize::try_from(len)?;
        // SAFETY: The device is registered, see `Device`.
        let raw = from_err_ptr(unsafe {
            sys::ib_umem_get_va(device.as_raw(), addr, len, access.to_c())
        })?;
        // INVARIANT: Pinned above.
        Ok(Self {
            raw: NonNull::new(raw).ok_or(ENOMEM)?,
            _device: device.clone(),
        })
    }

    fn raw(&self) -> &sys::ib_umem {
        // SAFETY: Ours by the type invariant.
        unsafe { self.raw.as_ref() }
    }

    /// The user address.
    pub fn address(&self) -> u64 {
        // CAST: Addresses have 64 bits on every machine with user-space RDMA.
        self.raw().address as u64
    }

    /// The number of pages.
    pub fn pages(&self) -> usize {
        // SAFETY: Ours by the type invariant.
        unsafe { sys::ib_umem_num_pages(self.raw.as_ptr()) }
    }

    /// The pages as the device sees them: a scatter list and its number of entries.
    pub(crate) fn sg_list(&self) -> (*mut bindings::scatterlist, c_int) {
        let table = &self.raw().sgt_append.sgt;
        // CAST: The RDMA core counts entries in an `int`; there is at most one a page, and pages
        // are limited to what one region lists.
        (table.sgl, table.nents as c_int)
    }
}

impl Drop for Umem {
    fn drop(&mut self) {
        // SAFETY: Ours by the type invariant, and given up here.
        unsafe { sys::ib_umem_release(self.raw.as_ptr()) };
    }
}
