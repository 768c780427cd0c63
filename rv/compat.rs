// SPDX-License-Identifier: GPL-2.0

//! REG_MEM as 32-bit programs lay it out.
//!
//! The one structure of the ABI that has a `size_t` and a pointer is four bytes and four bytes
//! shorter there. As an ioctl number contains the size, two of its three numbers mean another form
//! when a 64-bit program uses them: only who calls tells them apart. Everything else has the same
//! numbers and layouts.

use crate::abi;
use kernel::{
    ioctl::_IOWR,
    prelude::*,
    transmute::FromBytes, //
};

/// The type and the number of REG_MEM.
const TYPE: u32 = (abi::RV_CMD_REG_MEM >> 8) & 0xff;
const NUMBER: u32 = abi::RV_CMD_REG_MEM & 0xff;

/// REG_MEM, with the number that is REG_MEM_R4 for 64-bit callers.
pub(crate) const REG_MEM: u32 = _IOWR::<MemParams>(TYPE, NUMBER);
/// REG_MEM_R4, with the number that is REG_MEM_R1 for 64-bit callers.
pub(crate) const REG_MEM_R4: u32 = _IOWR::<MemParamsR4>(TYPE, NUMBER);
/// REG_MEM_R1.
pub(crate) const REG_MEM_R1: u32 = _IOWR::<MemParamsR1>(TYPE, NUMBER);

const _: () = {
    assert!(REG_MEM == abi::RV_CMD_REG_MEM_R4);
    assert!(REG_MEM_R4 == abi::RV_CMD_REG_MEM_R1);
    assert!(REG_MEM_R1 == 0xc028_1bf3);
};

/// What all three forms begin with, and all that REG_MEM_R1 has.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct MemParamsR1 {
    ibv_pd_handle: u32,
    cmd_fd_int: u32,
    addr: u64,
    length: u64,
    access: u32,
    pad: u32,
    ulen: u32,
    udata: u32,
}

/// REG_MEM_R4.
#[repr(C)]
pub(crate) struct MemParamsR4 {
    first: MemParamsR1,
    pad2: u64,
}

/// REG_MEM.
#[repr(C)]
pub(crate) struct MemParams {
    first: MemParamsR1,
    pad2: u64,
    pad3: u64,
}

// SAFETY: Numbers, for which any bytes are valid.
unsafe impl FromBytes for MemParamsR1 {}
// SAFETY: As above.
unsafe impl FromBytes for MemParamsR4 {}
// SAFETY: As above.
unsafe impl FromBytes for MemParams {}

impl From<MemParamsR1> for abi::rv_mem_params_in {
    fn from(params: MemParamsR1) -> Self {
        Self {
            ibv_pd_handle: params.ibv_pd_handle,
            cmd_fd_int: params.cmd_fd_int,
            addr: params.addr,
            length: params.length,
            access: params.access,
            pad: params.pad,
            // CAST: A `size_t` and a pointer of 32 bits, as wide as they are for us.
            ulen: params.ulen as usize,
            udata: params.udata as usize as *mut c_void,
            ..Default::default()
        }
    }
}

impl From<MemParamsR4> for abi::rv_mem_params_in {
    fn from(params: MemParamsR4) -> Self {
        Self {
            pad2: params.pad2,
            ..params.first.into()
        }
    }
}

impl From<MemParams> for abi::rv_mem_params_in {
    fn from(params: MemParams) -> Self {
        Self {
            pad2: params.pad2,
            pad3: params.pad3,
            ..params.first.into()
        }
    }
}
