// SPDX-License-Identifier: GPL-2.0

//! Host tests, which need no kernel and run in seconds with `cargo test`.
//!
//! `tests/abi.rs` compares what bindgen makes of the ABI header with the numbers of the ABI. The
//! parts of the modules that depend on `core` alone are included here by path, so that their unit
//! tests, and property tests that need `std`, run as host code.
