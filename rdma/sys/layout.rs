// SPDX-License-Identifier: GPL-2.0

//! Compares the layout of every C structure we touch, as gcc compiled it, with the one bindgen
//! derived through libclang. The two must see the same configuration: a difference would corrupt
//! memory without any other sign, so it stops the build.
//!
//! The list of structures and fields stands in `layout.h` and is shared with `layout.c`.

use super::*;

mod c {
    //! Sizes and offsets as the C compiler sees them, made from `layout.c`.

    include!(concat!(env!("RDMA_SYS_GENERATED"), "/layout_generated.rs"));
}

include!(concat!(env!("RDMA_SYS_GENERATED"), "/layout_checks.rs"));
