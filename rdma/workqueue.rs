// SPDX-License-Identifier: GPL-2.0

//! A work queue of one's own, which ends before its module does.
//!
//! The kernel crate only lends the system's queues. Those cannot be drained when a module is
//! unloaded, so the last lines of a work item could run in memory that is gone.

use crate::lease::{
    Lease,
    Owner, //
};
use core::ptr::NonNull;
use kernel::{
    bindings,
    prelude::*,
    str::CStrExt,
    sync::Arc,
    time::Jiffies,
    workqueue::{
        HasDelayedWork,
        Queue,
        RawWorkItem,
        WorkItem, //
    }, //
};
use rdma_sys as sys;

/// The C queue.
///
/// # Invariants
///
/// Ours to destroy.
pub struct Raw(NonNull<bindings::workqueue_struct>);

// SAFETY: A work queue may be used from any context.
unsafe impl Send for Raw {}
// SAFETY: As above.
unsafe impl Sync for Raw {}

impl Drop for Raw {
    fn drop(&mut self) {
        // SAFETY: Ours by the type invariant.
        unsafe { bindings::destroy_workqueue(self.0.as_ptr()) };
    }
}

/// A reference to a [`Workqueue`], which does not end as long as there is one.
#[derive(Clone)]
pub struct WorkqueueRef(Lease<Raw>);

impl WorkqueueRef {
    /// The queue, to put work on.
    pub fn queue(&self) -> &Queue {
        // SAFETY: The queue lives as long as the lease.
        unsafe { Queue::from_raw(self.0 .0.as_ptr()) }
    }

    /// Lets a delayed work item run after `delay` from now, whether it is waiting already or not:
    /// a timer that is set, or set anew. With no delay it runs at once.
    ///
    /// # Context
    ///
    /// Any.
    pub fn set_timer<T, const ID: u64>(&self, work: Arc<T>, delay: Jiffies)
    where
        T: WorkItem<ID, Pointer = Arc<T>> + HasDelayedWork<T, ID> + Send + Sync + 'static,
    {
        let queue = self.0 .0.as_ptr();
        // SAFETY: `HasDelayedWork` says that the work is part of a delayed work, which `__enqueue`
        // keeps alive during the call, and until it runs if the answer is that it was not waiting
        // before: else the reference that it waits with does. `T` is `Send` and static.
        let _ = unsafe {
            work.__enqueue(|item| {
                !bindings::mod_delayed_work_on(
                    // CAST: An `int` in C.
                    bindings::wq_misc_consts_WORK_CPU_UNBOUND as c_int,
                    queue,
                    kernel::container_of!(item, bindings::delayed_work, work),
                    delay,
                )
            })
        };
    }
}

/// A work queue. Dropping it waits until nobody can put work on it any more, and then until all
/// work is done.
pub struct Workqueue {
    /// Dropped first: `_owner` waits for it, too.
    first: WorkqueueRef,
    _owner: Owner<Raw>,
}

impl Workqueue {
    /// Makes an unbound queue: its work may run on any CPU, as much at a time as the system allows.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub fn new(name: &'static CStr) -> Result<Self> {
        // SAFETY: The name is a valid string, and copied.
        let raw = unsafe {
            sys::alloc_workqueue(
                name.as_char_ptr(),
                bindings::wq_flags_WQ_UNBOUND | bindings::wq_flags_WQ_SYSFS,
                0,
            )
        };
        // INVARIANT: Allocated above.
        let owner = Owner::new(Raw(NonNull::new(raw).ok_or(ENOMEM)?))?;
        let first = WorkqueueRef(owner.lease().ok_or(ENOMEM)?);
        Ok(Self {
            first,
            _owner: owner,
        })
    }

    /// Hands out a reference.
    pub fn get(&self) -> WorkqueueRef {
        self.first.clone()
    }
}
