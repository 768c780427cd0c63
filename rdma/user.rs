// SPDX-License-Identifier: GPL-2.0

//! Who is calling.

use kernel::task::{
    Kuid,
    Task, //
};
use rdma_sys as sys;

/// The calling task's effective user id, as the initial user namespace numbers it.
///
/// Unlike the number in the task's own namespace this one means the same user for all tasks.
pub fn current_uid() -> u32 {
    // SAFETY: Converting a kuid has no precondition.
    unsafe { sys::kuid_in_init_ns(Kuid::current_euid().into_raw()) }
}

/// Bytes of a task's name, with its NUL (`TASK_COMM_LEN`).
// CAST: It is 16.
pub const COMM_LEN: usize = kernel::bindings::TASK_COMM_LEN as usize;

/// The name that a task has now, with zeros behind.
pub fn comm(task: &Task) -> [u8; COMM_LEN] {
    let mut name = [0; COMM_LEN];
    // SAFETY: The task is alive as long as it is borrowed; the array has the length that is filled.
    unsafe { sys::task_comm(task.as_ptr(), name.as_mut_ptr()) };
    name
}

/// A random number, for values that a peer must not guess.
pub fn random() -> u32 {
    // SAFETY: Has no precondition.
    unsafe { kernel::bindings::get_random_u32() }
}
