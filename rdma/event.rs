// SPDX-License-Identifier: GPL-2.0

//! A one-shot event that can be waited for with a bound.
//!
//! The kernel crate's `Completion` knows neither a timeout nor a way to ask. Every wait of a driver
//! for a peer or for hardware needs a bound, so this is what the rest of the crate waits on.

use kernel::{
    bindings,
    prelude::*,
    time::{
        msecs_to_jiffies,
        Msecs, //
    },
    types::Opaque, //
};

/// An event that happens at most once.
#[pin_data]
pub struct Event {
    #[pin]
    completion: Opaque<bindings::completion>,
}

// SAFETY: A `struct completion` may be used from any task.
unsafe impl Send for Event {}
// SAFETY: A `struct completion` serialises concurrent use by its own lock.
unsafe impl Sync for Event {}

impl Event {
    /// Creates an event that has not happened yet.
    pub fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            completion <- Opaque::ffi_init(|slot| {
                // SAFETY: `slot` points to memory for a `struct completion`.
                unsafe { bindings::init_completion(slot) };
            }),
        })
    }

    /// Lets the event happen: every wait, present and future, returns.
    ///
    /// # Context
    ///
    /// Any.
    pub fn happen(&self) {
        // SAFETY: `self.completion` was initialised by `new`.
        unsafe { bindings::complete_all(self.completion.get()) };
    }

    /// Waits without a bound and without being interruptible.
    ///
    /// # Context
    ///
    /// Sleeps.
    pub fn wait(&self) {
        // SAFETY: `self.completion` was initialised by `new`.
        unsafe { bindings::wait_for_completion(self.completion.get()) };
    }

    /// Waits for at most `timeout` and returns whether the event has happened.
    ///
    /// Signals do not interrupt the wait: a task that is being killed tears down what it owns and
    /// needs the same bounded wait as any other.
    ///
    /// # Context
    ///
    /// Sleeps.
    pub fn wait_timeout(&self, timeout: Msecs) -> bool {
        // SAFETY: `self.completion` was initialised by `new`.
        let left = unsafe {
            bindings::wait_for_completion_timeout(self.completion.get(), msecs_to_jiffies(timeout))
        };
        left != 0
    }
}
