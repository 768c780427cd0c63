// SPDX-License-Identifier: GPL-2.0

//! The raw ABI, generated from `include/uapi/rdma/rv_user_ioctls.h`.
//!
//! Constants named `RVC_*` are values of macros and `offsetof()` expressions that the C compiler
//! worked out; `wrapper.h` lists them.

#![allow(
    missing_docs,
    non_camel_case_types,
    unreachable_pub,
    clippy::all,
    clippy::cast_lossless,
    clippy::ptr_as_ptr,
    clippy::ref_as_ptr,
    clippy::undocumented_unsafe_blocks,
    reason = "generated; the header documents every field"
)]

include!(concat!(env!("OUT_DIR"), "/abi.rs"));
