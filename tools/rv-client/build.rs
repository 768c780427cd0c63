// SPDX-License-Identifier: GPL-2.0

//! Binds `include/uapi/rdma/rv_user_ioctls.h`, the only definition of the ABI.

use std::env;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let here = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let uapi = here.join("../../include/uapi");
    let header = uapi.join("rdma/rv_user_ioctls.h");
    if !header.exists() {
        return Err(format!("{} is missing", header.display()).into());
    }
    println!("cargo::rerun-if-changed=wrapper.h");
    println!("cargo::rerun-if-changed={}", header.display());

    bindgen::Builder::default()
        .header(here.join("wrapper.h").display().to_string())
        .clang_arg(format!("-I{}", uapi.display()))
        .allowlist_type("rvc?_.*|ib_uverbs_ah_attr|ib_user_path_rec")
        .allowlist_var("RV_.*")
        .prepend_enum_name(false)
        .derive_default(true)
        .wrap_unsafe_ops(true)
        .generate_comments(false)
        .generate()?
        .write_to_file(PathBuf::from(env::var("OUT_DIR")?).join("abi.rs"))?;
    Ok(())
}
