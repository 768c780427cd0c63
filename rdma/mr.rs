// SPDX-License-Identifier: GPL-2.0

//! Memory regions over user memory (IBTA 10.6).
//!
//! There are two ways to give a kernel protection domain access to pages of the calling process:
//!
//! - **directly** ([`Mr::direct`]): the driver's own registration of user memory, called by the
//!   core for a kernel PD. Cheap, but only for drivers that are known to cope without the user data
//!   that their user-space part would pass: see [`DIRECT_DRIVERS`];
//! - **fast registration** ([`FastMr`]): pin the pages ([`Umem`]), list them in a region and post a
//!   REG_MR work request on a queue pair of the same PD. Works with every device that has fast
//!   registration at all, and is the default. Such a region can be used again: LOCAL_INV makes it
//!   a [`FreeMr`].
//!
//! Either way the keys are invalid, by deregistration or by LOCAL_INV, before the pages are
//! unpinned.

use crate::{
    device::{
        Device,
        DriverId, //
    },
    pd::Pd,
    umem::Umem, //
};
use core::ptr::NonNull;
use kernel::{
    error::{
        from_err_ptr,
        to_result, //
    },
    page::PAGE_SIZE,
    prelude::*,
    sync::Arc, //
};
use rdma_sys as sys;

/// Drivers whose registration of user memory is safe to call for a kernel PD, and why.
///
/// Never found out by trying: irdma and mthca dereference the user data that is missing here, hns
/// would register other memory.
pub const DIRECT_DRIVERS: &[(DriverId, &str)] = &[
    (
        DriverId(sys::rdma_driver_id_RDMA_DRIVER_RXE),
        "uses neither user data nor the caller's context; pins through ib_umem",
    ),
    (
        DriverId(sys::rdma_driver_id_RDMA_DRIVER_HFI1),
        "rdmavt keeps the pinned pages in its own segment map; user data is ignored",
    ),
    (
        DriverId(sys::rdma_driver_id_RDMA_DRIVER_MLX4),
        "user data is ignored; the region is written by firmware command from ib_umem",
    ),
    (
        DriverId(sys::rdma_driver_id_RDMA_DRIVER_MLX5),
        "user data is ignored; in-kernel users of ib_reg_user_mr() exist (RDS)",
    ),
    (
        DriverId(sys::rdma_driver_id_RDMA_DRIVER_BNXT_RE),
        "user data is ignored; the region is written by firmware command from ib_umem",
    ),
];

/// What may be done with a memory region (IBTA 10.6.3.2), valid by the core's rules.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Access(u32);

impl Access {
    /// No more than local reads.
    pub const LOCAL_READ: Self = Self(0);
    /// Local writes.
    pub const LOCAL_WRITE: Self = Self(sys::ib_access_flags_IB_ACCESS_LOCAL_WRITE);
    /// Local writes and the peer's RDMA WRITEs.
    pub const REMOTE_WRITE: Self = Self(
        sys::ib_access_flags_IB_ACCESS_LOCAL_WRITE | sys::ib_access_flags_IB_ACCESS_REMOTE_WRITE,
    );

    /// Checks the access flags of a user (`enum ib_uverbs_access_flags`) for a region on `device`.
    ///
    /// # Errors
    ///
    /// `EINVAL` for unknown flags, and for remote writes or atomics without local writes;
    /// `EOPNOTSUPP` for what the device cannot do, and for on-demand paging, which a region with
    /// pinned pages is not.
    pub fn from_user(device: &Device, flags: u32) -> Result<Self> {
        // SAFETY: The device is registered, see `Device`.
        to_result(unsafe { sys::ib_check_mr_access(device.as_raw(), flags) })?;
        if flags & sys::ib_access_flags_IB_ACCESS_ON_DEMAND != 0 {
            return Err(EOPNOTSUPP);
        }
        Ok(Self(flags))
    }

    /// Returns whether memory windows may be bound to the region.
    pub(crate) fn allows_windows(self) -> bool {
        self.0 & sys::ib_access_flags_IB_ACCESS_MW_BIND != 0
    }

    pub(crate) fn to_c(self) -> c_int {
        // CAST: The flags are an `int` in C; valid ones are far below its sign.
        self.0 as c_int
    }
}

/// A registered memory region.
///
/// # Invariants
///
/// `raw` is a region in `pd` that is ours to deregister; if it is for fast registration, `list_len`
/// is the number of pages that it can list, else 0, and `umem` are the pages that it lists.
pub struct Mr {
    raw: NonNull<sys::ib_mr>,
    umem: Option<Umem>,
    list_len: u32,
    pd: Arc<Pd>,
}

// SAFETY: The RDMA core allows its verbs from any task.
unsafe impl Send for Mr {}
// SAFETY: Shared references only read fields that do not change while the region is registered.
unsafe impl Sync for Mr {}

impl Mr {
    /// Returns whether [`Mr::direct`] may be used with `pd`'s device.
    pub fn direct_allowed(pd: &Pd) -> bool {
        let driver = pd.device().driver();
        DIRECT_DRIVERS.iter().any(|(known, _)| *known == driver)
    }

    /// Registers `len` bytes at `addr` of the calling process through the driver.
    ///
    /// `iova` is the address under which the region is known to the device; it must have the same
    /// offset in its page as `addr`.
    ///
    /// # Context
    ///
    /// Sleeps. In the context of the process that owns the memory.
    ///
    /// # Errors
    ///
    /// `EOPNOTSUPP` for a driver that is not listed in [`DIRECT_DRIVERS`]; `EINVAL` if the offsets
    /// differ or the range wraps; `EFAULT` for addresses that cannot be pinned for this access,
    /// `ENOMEM` beyond RLIMIT_MEMLOCK, `EPERM` if nothing may be locked; else the driver's error.
    pub fn direct(pd: &Arc<Pd>, addr: u64, len: u64, iova: u64, access: Access) -> Result<Self> {
        // CAST: A page has few bytes.
        let offset_mask = PAGE_SIZE as u64 - 1;
        if !Self::direct_allowed(pd) {
            return Err(EOPNOTSUPP);
        }
        if (addr ^ iova) & offset_mask != 0 || addr.checked_add(len).is_none() || len == 0 {
            return Err(EINVAL);
        }
        // SAFETY: PD and device are valid; the driver is known to work without user data.
        let raw = from_err_ptr(unsafe {
            sys::ib_reg_user_mr(pd.as_raw(), addr, len, iova, access.to_c())
        })?;
        // INVARIANT: Registered above; the driver keeps the pages.
        Ok(Self {
            raw: NonNull::new(raw).ok_or(ENOMEM)?,
            umem: None,
            list_len: 0,
            pd: pd.clone(),
        })
    }

    /// Gives the region back to be invalidated with [`Qp::post_local_inv`], if it was made by fast
    /// registration.
    ///
    /// # Errors
    ///
    /// The region, if it is another one.
    ///
    /// [`Qp::post_local_inv`]: crate::qp::Qp::post_local_inv
    pub fn into_fast(self) -> Result<FastMr, Self> {
        if self.list_len > 0 {
            Ok(FastMr(self))
        } else {
            Err(self)
        }
    }

    fn raw(&self) -> &sys::ib_mr {
        // SAFETY: Ours by the type invariant.
        unsafe { self.raw.as_ref() }
    }

    /// The protection domain.
    pub fn pd(&self) -> &Arc<Pd> {
        &self.pd
    }

    /// The local key.
    pub fn lkey(&self) -> u32 {
        self.raw().lkey
    }

    /// The remote key.
    pub fn rkey(&self) -> u32 {
        self.raw().rkey
    }

    /// The address of the region's first byte, in the terms of the device.
    pub fn iova(&self) -> u64 {
        self.raw().iova
    }

    /// The number of pages that a region for fast registration can list, 0 for any other region.
    pub fn list_len(&self) -> u32 {
        self.list_len
    }

    /// The length in bytes.
    pub fn length(&self) -> u64 {
        self.raw().length
    }
}

impl Drop for Mr {
    fn drop(&mut self) {
        // SAFETY: Ours by the type invariant, and given up here.
        let ret = unsafe { sys::ib_dereg_mr(self.raw.as_ptr()) };
        if ret != 0 {
            pr_err!("rdma: a memory region could not be deregistered, its pages stay pinned: error {ret}\n");
            core::mem::forget(self.umem.take());
        }
    }
}

/// A region for fast registration that lists no pages, and whose keys are not valid.
pub struct FreeMr(Mr);

impl FreeMr {
    /// Makes a region that can list `pages` pages.
    ///
    /// # Context
    ///
    /// Sleeps.
    ///
    /// # Errors
    ///
    /// `EOPNOTSUPP` if the device has no fast registration; `EINVAL` for no pages, or if it cannot
    /// list so many; else the driver's error.
    pub fn new(pd: &Arc<Pd>, pages: u32) -> Result<Self> {
        let limit = pd.device().max_fast_reg_pages();
        if limit == 0 {
            return Err(EOPNOTSUPP);
        }
        if pages == 0 || pages > limit {
            return Err(EINVAL);
        }
        // SAFETY: The PD is valid.
        let raw = from_err_ptr(unsafe {
            sys::ib_alloc_mr(pd.as_raw(), sys::ib_mr_type_IB_MR_TYPE_MEM_REG, pages)
        })?;
        // INVARIANT: Allocated above.
        Ok(Self(Mr {
            raw: NonNull::new(raw).ok_or(ENOMEM)?,
            umem: None,
            list_len: pages,
            pd: pd.clone(),
        }))
    }

    /// Lists the pages of `umem`, to be known to the device under `iova`.
    ///
    /// # Errors
    ///
    /// `EINVAL` if there are more pages than the region can list, or `iova` has another offset in
    /// its page than the memory; else the driver's error. The region is gone then.
    pub fn list(self, umem: Umem, iova: u64) -> Result<FastMr> {
        // CAST: A page has few bytes.
        let offset_mask = PAGE_SIZE as u64 - 1;
        let Self(mut mr) = self;
        if u32::try_from(umem.pages())? > mr.list_len || (iova ^ umem.address()) & offset_mask != 0
        {
            return Err(EINVAL);
        }
        // INVARIANT: The pages that are listed below.
        mr.umem = Some(umem);
        mr.list_pages()?;
        // SAFETY: The region is not registered yet, so its address may be chosen.
        unsafe { mr.raw.as_mut() }.iova = iova;
        Ok(FastMr(mr))
    }
}

/// A region for fast registration: its pages are listed, its keys not yet valid, or no longer to be
/// used.
///
/// [`Qp::post_reg_mr`] makes them valid; when that has completed well, [`FastMr::registered`] is
/// the [`Mr`]. [`Qp::post_local_inv`] makes them invalid; when that has completed well,
/// [`FastMr::invalidated`] is the [`FreeMr`].
///
/// [`Qp::post_reg_mr`]: crate::qp::Qp::post_reg_mr
/// [`Qp::post_local_inv`]: crate::qp::Qp::post_local_inv
pub struct FastMr(Mr);

impl FastMr {
    /// Makes a region that lists the pages of `umem`, known to the device under `iova`.
    ///
    /// # Context
    ///
    /// Sleeps.
    ///
    /// # Errors
    ///
    /// Those of [`FreeMr::new`] and [`FreeMr::list`].
    pub fn new(pd: &Arc<Pd>, umem: Umem, iova: u64) -> Result<Self> {
        FreeMr::new(pd, u32::try_from(umem.pages())?)?.list(umem, iova)
    }

    pub(crate) fn as_raw(&self) -> *mut sys::ib_mr {
        self.0.raw.as_ptr()
    }

    pub(crate) fn rkey(&self) -> u32 {
        self.0.rkey()
    }

    /// The registered region, once the work request of [`Qp::post_reg_mr`] has completed well.
    ///
    /// [`Qp::post_reg_mr`]: crate::qp::Qp::post_reg_mr
    pub fn registered(self) -> Mr {
        self.0
    }

    /// The region without its pages, which are unpinned, and with new keys, once the work request
    /// of [`Qp::post_local_inv`] has completed well.
    ///
    /// # Context
    ///
    /// Sleeps.
    ///
    /// # Safety
    ///
    /// It must have completed with [`Status::SUCCESS`] since the keys were made valid the last time.
    ///
    /// [`Qp::post_local_inv`]: crate::qp::Qp::post_local_inv
    /// [`Status::SUCCESS`]: crate::wc::Status::SUCCESS
    pub unsafe fn invalidated(self) -> FreeMr {
        let Self(mut mr) = self;
        mr.umem = None;
        mr.advance_keys();
        FreeMr(mr)
    }
}

impl Mr {
    /// Changes the part of the keys that is the user's (IBTA 10.6.5.1): who still has the old ones
    /// gets nothing.
    fn advance_keys(&mut self) {
        // SAFETY: A computation.
        let next = unsafe { sys::ib_inc_rkey(self.rkey()) };
        // CAST: The user's part is the lowest byte.
        // SAFETY: The region is ours, for fast registration and not registered.
        unsafe { sys::ib_update_fast_reg_key(self.raw.as_ptr(), next as u8) };
    }

    /// Lists the pages of `umem` in the region.
    fn list_pages(&mut self) -> Result {
        let umem = self.umem.as_ref().ok_or(EINVAL)?;
        let (sgl, entries) = umem.sg_list();
        // CAST: A page has few bytes.
        let page_size = PAGE_SIZE as u32;
        // SAFETY: The region is ours and not registered; the list belongs to `umem` and is mapped
        // for the region's device.
        let mapped = unsafe {
            sys::ib_map_mr_sg(
                self.raw.as_ptr(),
                sgl,
                entries,
                core::ptr::null_mut(),
                page_size,
            )
        };
        to_result(mapped.min(0))?;
        if mapped < entries {
            return Err(EINVAL);
        }
        Ok(())
    }
}
