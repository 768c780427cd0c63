// SPDX-License-Identifier: GPL-2.0

//! Things that others borrow and that their owner takes back only when nobody has them any more.
//!
//! A reference count says who frees a thing last; a lease says that the *owner* does, and that it
//! waits. That is what teardown needs: a device must not go, nor a work queue be destroyed by one
//! of its own items, before the last user is done, and it must be the owner's thread that goes on.

use crate::event::Event;
use core::{
    cell::UnsafeCell,
    mem::ManuallyDrop,
    ops::Deref, //
};
use kernel::{
    prelude::*,
    sync::{
        Arc,
        Refcount, //
    }, //
};

/// # Invariants
///
/// `thing` is there as long as `leases` is not zero. After that it belongs to the owner.
#[pin_data]
struct Shared<T> {
    thing: UnsafeCell<ManuallyDrop<T>>,
    /// Leases out, that of the owner included.
    leases: Refcount,
    /// Happens when `leases` drops to zero.
    #[pin]
    returned: Event,
}

// SAFETY: All leases share `&T`, and the owner drops the `T` in whatever task it is in.
unsafe impl<T: Send + Sync> Send for Shared<T> {}
// SAFETY: As above.
unsafe impl<T: Send + Sync> Sync for Shared<T> {}

/// A lease on a thing: as long as it exists, its owner does not take the thing back.
///
/// # Invariants
///
/// `shared.leases` counts this lease.
pub struct Lease<T> {
    shared: Arc<Shared<T>>,
}

impl<T> Lease<T> {
    /// Returns whether both are leases on the same thing.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }
}

impl<T> Clone for Lease<T> {
    fn clone(&self) -> Self {
        self.shared.leases.inc();
        // INVARIANT: Counted by the line above.
        Self {
            shared: self.shared.clone(),
        }
    }
}

impl<T> Deref for Lease<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: This lease is counted, so the thing is there, and nobody writes it.
        unsafe { &*self.shared.thing.get() }
    }
}

impl<T> Drop for Lease<T> {
    fn drop(&mut self) {
        if self.shared.leases.dec_and_test() {
            self.shared.returned.happen();
        }
    }
}

/// The owner of a thing that is on lease.
pub struct Owner<T> {
    /// Taken by `take_back`.
    own: Option<Lease<T>>,
}

impl<T> Owner<T> {
    /// Puts a thing on lease.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub fn new(thing: T) -> Result<Self> {
        let shared = Arc::pin_init(
            pin_init!(Shared {
                thing: UnsafeCell::new(ManuallyDrop::new(thing)),
                leases: Refcount::new(1),
                returned <- Event::new(),
            }),
            GFP_KERNEL,
        )?;
        // INVARIANT: `leases` is 1, for this lease.
        Ok(Self {
            own: Some(Lease { shared }),
        })
    }

    /// Hands out a lease. `None` once the thing was taken back.
    pub fn lease(&self) -> Option<Lease<T>> {
        self.own.clone()
    }

    /// Waits until all leases are returned, then drops the thing. Nobody can get a new lease
    /// meanwhile but from those.
    ///
    /// # Context
    ///
    /// Sleeps, without a bound: the users end their leases in bounded time.
    pub fn take_back(&mut self) {
        if let Some(own) = self.own.take() {
            let shared = own.shared.clone();
            drop(own);
            shared.returned.wait();
            // SAFETY: All leases are returned, so nobody but the owner reaches the thing, and the
            // owner comes here once. The memory may live on for a moment in a last `Lease::drop`;
            // the thing itself must be dropped by the owner's task.
            unsafe { ManuallyDrop::drop(&mut *shared.thing.get()) };
        }
    }
}

impl<T> Drop for Owner<T> {
    fn drop(&mut self) {
        self.take_back();
    }
}
