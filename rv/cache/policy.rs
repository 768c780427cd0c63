// SPDX-License-Identifier: GPL-2.0

//! How memory is registered: a switch for tests, `/sys/kernel/debug/rv/registration`.

use kernel::{
    debugfs::{
        Reader,
        Writer, //
    },
    fmt,
    prelude::*,
    sync::atomic::{
        Atomic,
        Relaxed, //
    },
    uaccess::UserSliceReader, //
};

/// How memory is registered.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Policy {
    /// Directly with drivers for which this is known to be safe, else by fast registration.
    Auto,
    /// Directly, or not at all.
    User,
    /// By fast registration.
    Fast,
}

/// The policy in force, as an index into [`Policy::ALL`].
static CURRENT: Atomic<u32> = Atomic::new(0);

impl Policy {
    const ALL: [(Self, &'static str); 3] = [
        (Self::Auto, "auto"),
        (Self::User, "user"),
        (Self::Fast, "fast"),
    ];

    /// The policy in force.
    pub(super) fn current() -> Self {
        Self::current_with_name().0
    }

    fn current_with_name() -> (Self, &'static str) {
        // ORDERING: Relaxed, nothing else depends on it.
        usize::try_from(CURRENT.load(Relaxed))
            .ok()
            .and_then(|index| Self::ALL.get(index))
            .copied()
            .unwrap_or(Self::ALL[0])
    }
}

/// The contents of the file.
pub(crate) struct Switch;

impl Writer for Switch {
    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", Policy::current_with_name().1)
    }
}

impl Reader for Switch {
    fn read_from_slice(&self, reader: &mut UserSliceReader) -> Result {
        let mut text = [0; 8];
        let text = text.get_mut(..reader.len()).ok_or(EINVAL)?;
        reader.read_slice(text)?;
        let wanted = text.trim_ascii();
        for (number, (_, name)) in (0..).zip(Policy::ALL) {
            if name.as_bytes() == wanted {
                CURRENT.store(number, Relaxed);
                return Ok(());
            }
        }
        Err(EINVAL)
    }
}
