// SPDX-License-Identifier: GPL-2.0

//! Mistakes in Rust, made on purpose, one at each load: what the debug kernel and the
//! harness are to see. The load then fails, so that nothing has to be unloaded.
//!
//! They are made as our modules could make them: with a raw pointer, with locks of the
//! `kernel` crate, with arithmetic.

use kernel::{
    new_mutex,
    new_spinlock,
    prelude::*, //
};

module! {
    type: Defects,
    name: "rust_defects",
    authors: ["rdmavt-rs authors"],
    description: "Mistakes in Rust, made on purpose",
    license: "GPL",
    params: {
        defect: i32 {
            default: 0,
            description: "Number of the mistake to make",
        },
    },
}

struct Defects;

impl kernel::Module for Defects {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        match module_parameters::defect.value() {
            1 => use_after_free()?,
            2 => out_of_bounds()?,
            3 => leak()?,
            4 => sleep_in_atomic()?,
            5 => lock_order()?,
            6 => overflow()?,
            _ => return Err(EINVAL),
        }
        Err(ECANCELED)
    }
}

/// Reads memory that has been given back.
fn use_after_free() -> Result {
    let pointer = KBox::into_raw(KBox::new([1u64; 8], GFP_KERNEL)?);
    // SAFETY: The pointer comes from `into_raw()`.
    drop(unsafe { KBox::from_raw(pointer) });
    // SAFETY: There is none, that is the point: the memory has been given back.
    let value = unsafe { pointer.cast::<u64>().read_volatile() };
    pr_info!("read {value} out of freed memory\n");
    Ok(())
}

/// Reads behind an allocation.
fn out_of_bounds() -> Result {
    let memory = KVec::from_elem(1u8, 24, GFP_KERNEL)?;
    // SAFETY: There is none, that is the point: there are 24 bytes.
    let value = unsafe { memory.as_ptr().add(24).read_volatile() };
    pr_info!("read {value} behind 24 bytes\n");
    Ok(())
}

/// Forgets an allocation.
fn leak() -> Result {
    let _ = KBox::into_raw(KBox::new([2u64; 96], GFP_KERNEL)?);
    Ok(())
}

/// Takes a lock that may sleep while it holds one under which nobody may.
fn sleep_in_atomic() -> Result {
    let spin = KBox::pin_init(new_spinlock!(0), GFP_KERNEL)?;
    let mutex = KBox::pin_init(new_mutex!(0), GFP_KERNEL)?;
    let _spinning = spin.lock();
    let _sleeping = mutex.lock();
    Ok(())
}

/// Takes two locks in one order, and then in the other.
fn lock_order() -> Result {
    let one = KBox::pin_init(new_mutex!(1, "defects::one"), GFP_KERNEL)?;
    let other = KBox::pin_init(new_mutex!(2, "defects::other"), GFP_KERNEL)?;
    {
        let _first = one.lock();
        let _second = other.lock();
    }
    let _first = other.lock();
    let _second = one.lock();
    Ok(())
}

/// Adds up to more than the type holds.
fn overflow() -> Result {
    let most = KBox::new(u32::MAX, GFP_KERNEL)?;
    let sum = *most + u32::try_from(module_parameters::defect.value())?;
    pr_info!("the sum is {sum}\n");
    Ok(())
}
