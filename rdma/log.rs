// SPDX-License-Identifier: GPL-2.0

//! Log lines that a peer or a user can cause at will.

/// Returns whether another such line may be printed.
pub fn allowed() -> bool {
    // SAFETY: Has no precondition.
    unsafe { rdma_sys::log_allowed() }
}

/// Prints with the given macro of the kernel crate, unless too many lines were printed lately.
///
/// # Examples
///
/// ```ignore
/// rdma::ratelimited!(pr_warn, "a packet was dropped: {}\n", reason);
/// ```
#[macro_export]
macro_rules! ratelimited {
    ($print:ident, $($arg:tt)*) => {
        if $crate::log::allowed() {
            ::kernel::$print!($($arg)*);
        }
    };
}
