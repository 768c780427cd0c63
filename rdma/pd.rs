// SPDX-License-Identifier: GPL-2.0

//! Protection domains (IBTA 10.2.3).

use crate::device::Device;
use core::ptr::NonNull;
use kernel::{
    error::from_err_ptr,
    prelude::*,
    sync::Arc, //
};
use rdma_sys as sys;

/// A protection domain. What is made in it holds a reference to it.
///
/// # Invariants
///
/// `raw` is a protection domain of `device`.
pub struct Pd {
    raw: NonNull<sys::ib_pd>,
    device: Device,
}

// SAFETY: The RDMA core allows its verbs from any task.
unsafe impl Send for Pd {}
// SAFETY: Every RDMA core operation on a PD is re-entrant.
unsafe impl Sync for Pd {}

impl Pd {
    /// Allocates a protection domain.
    ///
    /// # Context
    ///
    /// Sleeps.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, or the driver's error.
    pub fn new(device: &Device) -> Result<Arc<Self>> {
        // SAFETY: The device is registered, see `Device`.
        let raw = from_err_ptr(unsafe { sys::ib_alloc_pd(device.as_raw()) })?;
        // INVARIANT: Allocated above.
        let pd = Self {
            raw: NonNull::new(raw).ok_or(ENOMEM)?,
            device: device.clone(),
        };
        Ok(Arc::new(pd, GFP_KERNEL)?)
    }

    /// The device of the protection domain.
    pub fn device(&self) -> &Device {
        &self.device
    }

    pub(crate) fn as_raw(&self) -> *mut sys::ib_pd {
        self.raw.as_ptr()
    }
}

impl Drop for Pd {
    fn drop(&mut self) {
        // SAFETY: Ours by the type invariant; whatever was made in it held a reference and is gone.
        let ret = unsafe { sys::ib_dealloc_pd(self.raw.as_ptr()) };
        if ret != 0 {
            pr_warn!(
                "rdma: a protection domain could not be freed: error {}\n",
                ret
            );
        }
    }
}
