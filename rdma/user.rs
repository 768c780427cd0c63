// SPDX-License-Identifier: GPL-2.0

//! Who is calling.

use kernel::task::Kuid;
use rdma_sys as sys;

/// The calling task's effective user id, as the initial user namespace numbers it.
///
/// Unlike the number in the task's own namespace this one means the same user for all tasks.
pub fn current_uid() -> u32 {
    // SAFETY: Converting a kuid has no precondition.
    unsafe { sys::kuid_in_init_ns(Kuid::current_euid().into_raw()) }
}

/// A random number, for values that a peer must not guess.
pub fn random() -> u32 {
    // SAFETY: Has no precondition.
    unsafe { kernel::bindings::get_random_u32() }
}
