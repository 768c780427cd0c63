// SPDX-License-Identifier: GPL-2.0

//! Raw bindings of the RDMA core: types and functions of the C headers listed in `bindings.h`.
//!
//! Only the crate `rdma` names this one. C types that the `kernel` crate binds already are taken
//! from it, so that one C type is one Rust type. [`layout`] compares what bindgen made of every
//! structure we touch with what the C compiler made of it.

#![expect(
    missing_docs,
    non_camel_case_types,
    non_snake_case,
    non_upper_case_globals,
    unsafe_op_in_unsafe_fn,
    reason = "generated from C headers"
)]
#![allow(
    clippy::all,
    clippy::cast_lossless,
    clippy::ptr_as_ptr,
    clippy::ref_as_ptr,
    clippy::undocumented_unsafe_blocks,
    dead_code,
    improper_ctypes,
    reason = "generated from C headers; which of these fire depends on the kernel"
)]

use kernel::{
    bindings::*,
    ffi, //
};
use pin_init::MaybeZeroable;

include!(concat!(
    env!("RDMA_SYS_GENERATED"),
    "/bindings_generated.rs"
));

// SAFETY: A bitfield unit is an array of bytes; all zero is a valid value of it.
unsafe impl<const N: usize> pin_init::Zeroable for __BindgenBitfieldUnit<[u8; N]> {}

// SAFETY: The type has no bytes; the union's own storage stands beside it.
unsafe impl<T> pin_init::Zeroable for __BindgenUnionField<T> {}

mod layout;
