// SPDX-License-Identifier: GPL-2.0

//! The user-space ABI, bound from `include/uapi/rdma/rv_user_ioctls.h`.
//!
//! [`read()`] and [`write()`] are the only ways data cross the border. All structures have explicit
//! padding, so whatever is written is initialised.

use crate::cache;
use kernel::{
    ffi,
    prelude::*,
    transmute::{
        AsBytes,
        FromBytes, //
    },
    uaccess::{
        UserPtr,
        UserSlice, //
    }, //
};

#[expect(
    non_camel_case_types,
    unreachable_pub,
    unsafe_op_in_unsafe_fn,
    reason = "generated from a C header"
)]
#[allow(
    clippy::all,
    clippy::cast_lossless,
    clippy::ptr_as_ptr,
    clippy::ref_as_ptr,
    clippy::undocumented_unsafe_blocks,
    dead_code,
    reason = "generated from a C header"
)]
mod generated {
    use super::ffi;

    include!(concat!(env!("RV_GENERATED"), "/abi_generated.rs"));
}

pub(crate) use generated::*;

/// Declares structures that user space may fill with any bytes.
macro_rules! inputs {
    ($($name:ident)*) => {$(
        // SAFETY: Numbers and arrays of them, for which any bytes are valid; the one pointer, in
        // REG_MEM, is never followed.
        unsafe impl FromBytes for $name {}
    )*};
}

/// Declares structures that are copied to user space.
macro_rules! outputs {
    ($($name:ident)*) => {$(
        // SAFETY: Numbers and arrays of them, with every gap a field of its own.
        unsafe impl AsBytes for $name {}
    )*};
}

inputs! {
    rv_capability_params
    rv_attach_params_in
    rv_attach_params_in_r5
    rv_mem_params_in
    rv_mem_params_in_r4
    rv_mem_params_in_r1
    rv_dereg_params_in
    rv_evict_params_in
    rv_conn_create_params_in
    rv_conn_connect_params_in
    rv_conn_connected_params_in
    rv_conn_get_conn_count_params_in
    rv_conn_get_stats_params_in
    rv_post_write_params_in
}

outputs! {
    rv_capability_params
    rv_attach_params_out
    rv_mem_params_out
    rv_evict_params_out
    rv_cache_stats_params_out
    rv_conn_create_params_out
    rv_conn_get_conn_count_params_out
    rv_conn_get_stats_params_out
    rv_event_stats_params_out
    rv_post_write_params_out
    rv_event
}

/// Reads an ioctl's input.
///
/// # Errors
///
/// `EFAULT`.
pub(crate) fn read<T: FromBytes>(arg: UserPtr) -> Result<T> {
    UserSlice::new(arg, size_of::<T>()).reader().read()
}

/// Writes an ioctl's output.
///
/// # Errors
///
/// `EFAULT`.
pub(crate) fn write<T: AsBytes>(arg: UserPtr, value: &T) -> Result {
    UserSlice::new(arg, size_of::<T>()).writer().write(value)
}

impl rv_evict_params_in {
    /// What is to be evicted.
    ///
    /// # Errors
    ///
    /// `EINVAL` for a type that is none, or one of GPU memory.
    pub(crate) fn selection(&self) -> Result<cache::Selection> {
        // SAFETY: Both members are numbers, for which any bytes are valid, and of the same size.
        let (search, amount) = unsafe {
            (
                self.__bindgen_anon_1.search,
                self.__bindgen_anon_1.amount, //
            )
        };
        match u32::from(self.type_) {
            RV_EVICT_TYPE_SEARCH_EXACT => Ok(cache::Selection::Exact {
                addr: search.addr,
                len: search.length,
                access: search.access,
            }),
            RV_EVICT_TYPE_SEARCH_RANGE => Ok(cache::Selection::Range {
                addr: search.addr,
                len: search.length,
            }),
            RV_EVICT_TYPE_AMOUNT => Ok(cache::Selection::Amount {
                bytes: amount.bytes,
                count: amount.count,
            }),
            _ => Err(EINVAL),
        }
    }
}

impl From<cache::Evicted> for rv_evict_params_out {
    fn from(evicted: cache::Evicted) -> Self {
        Self {
            bytes: evicted.bytes,
            count: evicted.count,
            ..Default::default()
        }
    }
}

impl From<cache::Stats> for rv_cache_stats_params_out {
    fn from(stats: cache::Stats) -> Self {
        Self {
            cache_size: stats.cache_size,
            max_cache_size: stats.max_cache_size,
            limit_cache_size: stats.limit_cache_size,
            count: stats.count,
            max_count: stats.max_count,
            inuse: stats.inuse,
            max_inuse: stats.max_inuse,
            inuse_bytes: stats.inuse_bytes,
            max_inuse_bytes: stats.max_inuse_bytes,
            max_refcount: stats.max_refcount,
            hit: stats.hit,
            miss: stats.miss,
            full: stats.full,
            failed: stats.failed,
            remove: stats.remove,
            evict: stats.evict,
            ..Default::default()
        }
    }
}

/// A revision of the ABI, as PSM3 and the module compare them: first major, then minor.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Revision {
    pub(crate) major: u16,
    pub(crate) minor: u16,
}

impl Revision {
    /// What this module implements.
    pub(crate) const CURRENT: Self = Self {
        // CAST: The header's numbers are small.
        major: RV_ABI_VER_MAJOR as u16,
        // CAST: As above.
        minor: RV_ABI_VER_MINOR as u16,
    };

    /// The last one without CAPABILITY.
    pub(crate) const R1_2: Self = Self { major: 1, minor: 2 };

    /// The last one without `max_fmr_size`.
    pub(crate) const R1_3: Self = Self { major: 1, minor: 3 };
}

const _: () = assert!(size_of::<rv_event>() == 65);
