// SPDX-License-Identifier: GPL-2.0

//! The address space of a process.

use kernel::{
    bindings,
    error::to_result,
    mm::Mm,
    prelude::*,
    sync::aref::ARef, //
};
use rdma_sys as sys;

/// A reference to an address space: it keeps the structure, not the memory in it.
///
/// As long as it is held no other address space can be mistaken for this one.
#[derive(Clone)]
pub struct MmRef(ARef<Mm>);

impl MmRef {
    /// Takes a reference to the calling task's address space. `None` in a kernel thread.
    pub fn current() -> Option<Self> {
        current!().mm().map(|mm| {
            let mm: &Mm = mm;
            Self(ARef::from(mm))
        })
    }

    /// Returns whether this is the calling task's address space.
    ///
    /// It is not after `exec()`, nor in a child that was forked.
    #[inline]
    pub fn is_current(&self) -> bool {
        current!().mm().is_some_and(|mm| {
            let mm: &Mm = mm;
            core::ptr::eq(mm, &*self.0)
        })
    }

    /// Prepares the calling task's address space for notifiers ([`Watched`]).
    ///
    /// The first notifier of an address space does this by itself, but then it may fail because of
    /// a pending signal.
    ///
    /// # Context
    ///
    /// Sleeps; takes the `mmap_lock`.
    ///
    /// # Errors
    ///
    /// `EINVAL` if this is not the calling task's address space; `EINTR` for a pending signal;
    /// `ENOMEM`.
    ///
    /// [`Watched`]: crate::notifier::Watched
    pub fn prepare_notifiers(&self) -> Result {
        if !self.is_current() {
            return Err(EINVAL);
        }
        // SAFETY: The address space has users, since the calling task is one.
        to_result(unsafe { sys::mmu_notifier_register(core::ptr::null_mut(), self.as_raw()) })
    }

    pub(crate) fn as_raw(&self) -> *mut bindings::mm_struct {
        self.0.as_raw()
    }
}
