// SPDX-License-Identifier: GPL-2.0

//! Ctrl-C: asked for at every wait, so that both sides get to say goodbye.

use std::io;
use std::sync::atomic::{
    AtomicBool,
    Ordering, //
};
use std::sync::Arc;

use signal_hook::consts::{
    SIGHUP,
    SIGINT,
    SIGTERM, //
};
use signal_hook::flag;

use crate::failure::{
    Failure,
    Result, //
};

/// Whether the user wants this to end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interrupt {
    raised: Arc<AtomicBool>,
}

impl Interrupt {
    /// Lets SIGINT, SIGTERM and SIGHUP set it; the second one ends the program at once.
    pub(crate) fn install() -> io::Result<Self> {
        let this = Self::default();
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            flag::register_conditional_shutdown(signal, 130, this.raised.clone())?;
            flag::register(signal, this.raised.clone())?;
        }
        Ok(this)
    }

    /// Fails once a signal came.
    pub(crate) fn check(&self) -> Result<()> {
        // ORDERING: A lone flag, nothing is published with it.
        match self.raised.load(Ordering::Relaxed) {
            true => Err(Failure::Interrupted),
            false => Ok(()),
        }
    }
}
