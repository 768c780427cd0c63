// SPDX-License-Identifier: GPL-2.0

//! Binds the few calls of libibverbs that are measured beside those of rv.

use std::env;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=wrapper.h");
    println!("cargo::rustc-link-lib=ibverbs");
    bindgen::Builder::default()
        .header("wrapper.h")
        .allowlist_function("ibv_(get_device_list|free_device_list|get_device_name)")
        .allowlist_function("ibv_(open|close)_device")
        .allowlist_function("ibv_(alloc|dealloc)_pd")
        .allowlist_function("ibv_(reg|dereg)_mr")
        .allowlist_type("ibv_access_flags")
        .opaque_type("ibv_(context|device|pd|mr)")
        .prepend_enum_name(false)
        .generate_comments(false)
        .layout_tests(false)
        .wrap_unsafe_ops(true)
        .generate()?
        .write_to_file(PathBuf::from(env::var("OUT_DIR")?).join("verbs.rs"))?;
    Ok(())
}
