// SPDX-License-Identifier: GPL-2.0

//! Things made from a range of a process's memory, which are told when the memory changes.
//!
//! A [`Watched`] value goes with a range of addresses. It is used like this:
//!
//! 1. [`Watched::new`]: from here on [`Target::invalidate`] is called for every change;
//! 2. [`Watched::read_begin`] returns a [`Sequence`], after waiting for a change that is under way;
//! 3. the user makes something from the pages, for instance a memory region, which may sleep;
//! 4. under the lock [`Target::shared`] the user asks [`Watched::is_outdated`] whether a change
//!    came since step 2. If so what was made is worth nothing: undo it, and go back to step 2. Else
//!    it is made known to [`Target::invalidate`] before the lock is released.
//!
//! No change can be missed: it is noted under the same lock before `invalidate` is called, so it
//! either comes before step 4, which then sees it, or after it, when `invalidate` knows what was
//! made.
//!
//! C header: [`include/linux/mmu_notifier.h`](srctree/include/linux/mmu_notifier.h)

use crate::mm::MmRef;
use core::{
    ops::Deref,
    ptr::addr_of, //
};
use kernel::{
    error::to_result,
    prelude::*,
    sync::{
        SpinLock,
        SpinLockGuard, //
    },
    types::Opaque, //
};
use rdma_sys as sys;

/// Why memory changes (`enum mmu_notifier_event`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reason {
    /// It is unmapped or moved.
    Unmap,
    /// Pages are replaced or taken away.
    Clear,
    /// It becomes accessible in other ways.
    Protection,
    /// It is migrated to other pages.
    Migrate,
    /// The address space ends.
    Release,
    /// Any other.
    Other,
}

impl Reason {
    fn from_c(event: sys::mmu_notifier_event) -> Self {
        match event {
            sys::mmu_notifier_event_MMU_NOTIFY_UNMAP => Self::Unmap,
            sys::mmu_notifier_event_MMU_NOTIFY_CLEAR => Self::Clear,
            sys::mmu_notifier_event_MMU_NOTIFY_PROTECTION_VMA
            | sys::mmu_notifier_event_MMU_NOTIFY_PROTECTION_PAGE => Self::Protection,
            sys::mmu_notifier_event_MMU_NOTIFY_MIGRATE => Self::Migrate,
            sys::mmu_notifier_event_MMU_NOTIFY_RELEASE => Self::Release,
            _ => Self::Other,
        }
    }
}

/// Whether [`Target::follow_up`] is to be called.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum FollowUp {
    /// It is.
    Needed,
    /// It is not.
    No,
}

/// What is told of changes.
pub trait Target: Send + Sync + 'static {
    /// What the lock protects.
    type Shared: Send + Unpin;

    /// The lock under which changes are noted. Always the same one.
    fn shared(&self) -> &SpinLock<Self::Shared>;

    /// The memory changes: nothing made from its present pages may be given out any more.
    ///
    /// # Context
    ///
    /// Locks of the memory management are held, perhaps on the way to free memory, and so is
    /// [`Target::shared`]: must not sleep, nor allocate, nor wait, nor drop a [`Watched`].
    fn invalidate(&self, shared: &mut Self::Shared, reason: Reason) -> FollowUp;

    /// Called after `invalidate` has asked for it, with the lock released.
    ///
    /// # Context
    ///
    /// As `invalidate`, but for the lock: a place to queue work.
    fn follow_up(&self);
}

/// How often memory had changed when [`Watched::read_begin`] was called.
#[derive(Clone, Copy)]
pub struct Sequence(c_ulong);

/// A value that is told when a range of a process's memory changes.
///
/// Dropping it waits until a change that is under way is over, which may sleep; then the value is
/// dropped.
///
/// # Invariants
///
/// `notifier` is inserted.
#[pin_data(PinnedDrop)]
#[repr(C)]
pub struct Watched<T: Target> {
    // At offset 0: a pointer to it is a pointer to the whole.
    #[pin]
    notifier: Opaque<sys::mmu_interval_notifier>,
    target: T,
}

// SAFETY: A notifier may be removed from any task.
unsafe impl<T: Target> Send for Watched<T> {}
// SAFETY: Shared references use the notifier in ways that its own locks serialise.
unsafe impl<T: Target> Sync for Watched<T> {}

impl<T: Target> Watched<T> {
    const OPS: &'static sys::mmu_interval_notifier_ops = &sys::mmu_interval_notifier_ops {
        invalidate: Some(Self::on_invalidate),
        invalidate_start: None,
        invalidate_finish: None,
    };

    /// Creates a value that is told of every change to the `len` bytes at `start` of the calling
    /// process's memory.
    ///
    /// # Context
    ///
    /// Sleeps. In a task that has `mm` as its address space.
    ///
    /// # Errors
    ///
    /// `EINVAL` if `mm` is not that of the calling task, `EOVERFLOW` for a range that is empty or
    /// wraps, `ENOMEM`; `EINTR` only if [`MmRef::prepare_notifiers`] was not called before.
    pub fn new<'a>(
        mm: &'a MmRef,
        start: u64,
        len: u64,
        target: T,
    ) -> impl PinInit<Self, Error> + use<'a, T> {
        // The target first: it may be told of a change before this returns.
        try_pin_init!(Self {
            target,
            // INVARIANT: Inserted, or this fails.
            notifier <- Opaque::try_ffi_init(move |slot| {
                if !mm.is_current() {
                    return Err(EINVAL);
                }
                // SAFETY: `slot` stays where it is until `PinnedDrop` removes the notifier. The
                // address space has users, since the calling task is one.
                to_result(unsafe {
                    sys::mmu_interval_notifier_insert(
                        slot,
                        mm.as_raw(),
                        // CAST: Addresses have 64 bits on every machine with user-space RDMA.
                        start as c_ulong,
                        // CAST: As above.
                        len as c_ulong,
                        Self::OPS,
                    )
                })
            }),
        }? Error)
    }

    /// Begins to make something from the pages.
    ///
    /// # Context
    ///
    /// Sleeps until a change of the range that is under way is over. With no lock held.
    pub fn read_begin(&self) -> Sequence {
        // SAFETY: Inserted by the type invariant.
        Sequence(unsafe { sys::mmu_interval_read_begin(self.notifier.get()) })
    }

    /// Returns whether the memory has changed since [`Watched::read_begin`] returned `seen`.
    ///
    /// `shared` shows that the target's lock is held. With another lock the answer is yes, as it
    /// would mean nothing.
    pub fn is_outdated(&self, seen: Sequence, shared: &SpinLockGuard<'_, T::Shared>) -> bool {
        let right_lock = core::ptr::eq(shared.lock_ref(), self.target.shared());
        // SAFETY: Inserted by the type invariant; the sequence is written under the lock that is
        // held.
        !right_lock || unsafe { sys::mmu_interval_read_retry(self.notifier.get(), seen.0) }
    }

    /// # Safety
    ///
    /// To be called by the memory management as `mmu_interval_notifier_ops.invalidate`.
    unsafe extern "C" fn on_invalidate(
        notifier: *mut sys::mmu_interval_notifier,
        range: *const sys::mmu_notifier_range,
        sequence: c_ulong,
    ) -> bool {
        let this = notifier.cast::<Self>();
        // SAFETY: Only notifiers inserted by `new` have this function: they are the first field of
        // a `Self`, whose target was there before them and is until they are removed.
        let target = unsafe { &*addr_of!((*this).target) };
        // SAFETY: The memory management passes a valid range.
        let reason = Reason::from_c(unsafe { (*range).event });
        let follow_up = {
            let mut shared = target.shared().lock();
            // SAFETY: A notifier that is being called is inserted.
            unsafe { sys::mmu_interval_set_seq(notifier, sequence) };
            target.invalidate(&mut shared, reason)
        };
        if follow_up == FollowUp::Needed {
            target.follow_up();
        }
        // Nothing here ever has to sleep.
        true
    }
}

impl<T: Target> Deref for Watched<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.target
    }
}

#[pinned_drop]
impl<T: Target> PinnedDrop for Watched<T> {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: Inserted by the type invariant. When this returns no callback runs, and none
        // will.
        unsafe { sys::mmu_interval_notifier_remove(self.notifier.get()) };
    }
}
