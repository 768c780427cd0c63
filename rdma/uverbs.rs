// SPDX-License-Identifier: GPL-2.0

//! Protection domains of processes, which they made through uverbs, and memory regions in them.
//!
//! A process names its protection domain by a file descriptor and a handle. Neither is believed:
//! [`UverbsFile::from_fd`] recognises a file of uverbs by what opened it, and [`UverbsFile::pd`]
//! looks the handle up in that file as uverbs itself does.
//!
//! # What keeps what alive
//!
//! A [`UserMr`] holds a reference to the open file, so that neither the caller's context nor its
//! protection domain is closed under the region, whatever descriptors the process closes; it counts
//! as a user of the protection domain, which cannot be deallocated (`EBUSY`) as long as there is
//! one; and it holds the [`Device`]. As uverbs is told of a device's end only after the clients that
//! registered later, and this module cannot be loaded before `ib_uverbs` is, a device that is held
//! cannot be taken from the file's context.

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

/// The most bytes of driver data that uverbs can be given: its oldest interface counts them in
/// words, with 16 bits.
pub const MAX_DRIVER_DATA: usize = 4 * 0xffff;

/// An open file of uverbs.
///
/// # Invariants
///
/// `file` is a counted reference to an open file that `raw` belongs to.
pub struct UverbsFile {
    file: NonNull<bindings::file>,
    raw: NonNull<sys::ib_uverbs_file>,
}

// SAFETY: References to files may be given back by any task.
unsafe impl Send for UverbsFile {}
// SAFETY: What is called with a shared reference is allowed from any task.
unsafe impl Sync for UverbsFile {}

impl UverbsFile {
    /// The open file of uverbs that is the calling process's descriptor `fd`.
    ///
    /// # Context
    ///
    /// In a process.
    ///
    /// # Errors
    ///
    /// `EFAULT` if there is no such descriptor, or it is of anything else (or of no more than a
    /// path).
    pub fn from_fd(fd: u32) -> Result<Self> {
        // SAFETY: Any number will do.
        let file = NonNull::new(unsafe { sys::fget(fd) }).ok_or(EFAULT)?;
        // SAFETY: A reference was taken above.
        let raw = NonNull::new(unsafe { sys::uverbs_file(file.as_ptr()) });
        match raw {
            // INVARIANT: The reference that was taken above.
            Some(raw) => Ok(Self { file, raw }),
            None => {
                // SAFETY: Taken above, and not used any more.
                unsafe { sys::fput(file.as_ptr()) };
                Err(EFAULT)
            }
        }
    }

    /// The protection domain of this file that `handle` names, which must be one on `device`.
    ///
    /// # Context
    ///
    /// Sleeps.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the file is for another device, or for none yet; if there is no such protection
    /// domain, or it is just being deallocated.
    pub fn pd(self, device: &Device, handle: u32) -> Result<UserPd> {
        // SAFETY: The file is open by the type invariant, and `device` held by the caller.
        if !unsafe { sys::uverbs_is_for(self.raw.as_ptr(), device.as_raw()) } {
            return Err(EINVAL);
        }
        // SAFETY: The file is open by the type invariant and for `device`, just checked.
        let object = from_err_ptr(unsafe { sys::uverbs_get_pd(self.raw.as_ptr(), handle) })
            .map_err(|_| EINVAL)?;
        // INVARIANT: Looked up above.
        Ok(UserPd {
            object: NonNull::new(object).ok_or(EINVAL)?,
            file: self,
            device: device.clone(),
        })
    }
}

impl Clone for UverbsFile {
    fn clone(&self) -> Self {
        // SAFETY: Open by the type invariant.
        unsafe { sys::fget_again(self.file.as_ptr()) };
        // INVARIANT: Counted by the line above.
        Self { ..*self }
    }
}

impl Drop for UverbsFile {
    fn drop(&mut self) {
        // SAFETY: Ours by the type invariant, and given up here.
        unsafe { sys::fput(self.file.as_ptr()) };
    }
}

/// Which protection domain of a process a region is in.
///
/// No two protection domains have the same one at the same time, and one that has a region cannot
/// go: so as long as there is a region in it, nothing else has its identity, whatever file and
/// handle it is found by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UserPdId(usize);

/// A protection domain of a process, which cannot deallocate it meanwhile.
///
/// To be held for as long as one call takes.
///
/// # Invariants
///
/// `object` is locked for reading, in `file`, which is in use for `device`.
pub struct UserPd {
    object: NonNull<sys::ib_uobject>,
    file: UverbsFile,
    device: Device,
}

impl UserPd {
    fn as_raw(&self) -> *mut sys::ib_pd {
        // SAFETY: Locked by the type invariant.
        unsafe { sys::uverbs_pd(self.object.as_ptr()) }
    }

    /// Which protection domain it is.
    pub fn id(&self) -> UserPdId {
        UserPdId(self.as_raw().addr())
    }

    /// Registers `len` bytes at `addr` of the calling process, which the device knows under the
    /// same address.
    ///
    /// The driver gets the `data_len` bytes at the user address `data` as what the process's
    /// user-space driver tells it.
    ///
    /// # Context
    ///
    /// Sleeps. In the context of the process that owns the memory.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the range wraps, or for more than [`MAX_DRIVER_DATA`]; `EOPNOTSUPP` for memory
    /// windows, since a region to which the process has bound one could not be deregistered; else
    /// the driver's error.
    pub fn register(
        &self,
        addr: u64,
        len: u64,
        access: Access,
        data: u64,
        data_len: usize,
    ) -> Result<UserMr> {
        if addr.checked_add(len).is_none() || data_len > MAX_DRIVER_DATA {
            return Err(EINVAL);
        }
        if access.allows_windows() {
            return Err(EOPNOTSUPP);
        }
        // SAFETY: File and protection domain belong together and are there by the type invariant.
        let raw = from_err_ptr(unsafe {
            sys::uverbs_reg_mr(
                self.file.raw.as_ptr(),
                self.as_raw(),
                addr,
                len,
                access.to_c(),
                data,
                data_len,
            )
        })?;
        // INVARIANT: Registered above.
        Ok(UserMr {
            raw: NonNull::new(raw).ok_or(ENOMEM)?,
            file: Some(self.file.clone()),
            _device: self.device.clone(),
        })
    }
}

impl Drop for UserPd {
    fn drop(&mut self) {
        // SAFETY: Locked by the type invariant, and not used any more.
        unsafe { sys::uverbs_put_pd(self.object.as_ptr()) };
    }
}

/// A memory region in a protection domain of a process.
///
/// # Invariants
///
/// `raw` is a region in a protection domain of `file` on the device, and ours to deregister.
pub struct UserMr {
    raw: NonNull<sys::ib_mr>,
    /// There until the region is dropped.
    file: Option<UverbsFile>,
    _device: Device,
}

// SAFETY: The RDMA core allows its verbs from any task.
unsafe impl Send for UserMr {}
// SAFETY: Shared references only read fields that do not change while the region is registered.
unsafe impl Sync for UserMr {}

impl UserMr {
    fn raw(&self) -> &sys::ib_mr {
        // SAFETY: Ours by the type invariant.
        unsafe { self.raw.as_ref() }
    }

    /// The local key.
    pub fn lkey(&self) -> u32 {
        self.raw().lkey
    }

    /// The remote key.
    pub fn rkey(&self) -> u32 {
        self.raw().rkey
    }
}

impl Drop for UserMr {
    fn drop(&mut self) {
        let Some(file) = self.file.take() else {
            return;
        };
        // SAFETY: Ours by the type invariant, and given up here; the file is still open.
        let ret = unsafe { sys::uverbs_dereg_mr(file.raw.as_ptr(), self.raw.as_ptr()) };
        if ret != 0 {
            pr_err!("rdma: a process's memory region could not be deregistered, its file stays open: error {ret}\n");
            core::mem::forget(file);
        }
    }
}
