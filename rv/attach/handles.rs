// SPDX-License-Identifier: GPL-2.0

//! A file's handles for connections.

use crate::conn::Conn;
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// The connections of a file by their handles: handle 1 is the first entry.
pub(super) struct Handles {
    pub(super) conns: KVec<Option<Arc<Conn>>>,
    /// The attachment has ended.
    pub(super) closed: bool,
}

impl Handles {
    pub(super) fn new() -> Self {
        Self {
            conns: KVec::new(),
            closed: false,
        }
    }

    fn index(handle: u64) -> Result<usize> {
        let index = handle.checked_sub(1).ok_or(EINVAL)?;
        usize::try_from(index).map_err(|_| EINVAL)
    }

    pub(super) fn get(&self, handle: u64) -> Result<&Arc<Conn>> {
        self.conns
            .get(Self::index(handle)?)
            .and_then(Option::as_ref)
            .ok_or(EINVAL)
    }

    /// Enters a connection under the lowest free handle.
    ///
    /// # Errors
    ///
    /// `ENXIO` if the attachment has ended, `ENOMEM`.
    pub(super) fn insert(&mut self, conn: Arc<Conn>) -> Result<u64> {
        if self.closed {
            return Err(ENXIO);
        }
        let at = match self.conns.iter().position(Option::is_none) {
            Some(at) => at,
            None => {
                self.conns.push(None, GFP_KERNEL)?;
                self.conns.len() - 1
            }
        };
        if let Some(entry) = self.conns.get_mut(at) {
            *entry = Some(conn);
        }
        Ok(u64::try_from(at)? + 1)
    }

    pub(super) fn remove(&mut self, handle: u64) -> Option<Arc<Conn>> {
        self.conns.get_mut(Self::index(handle).ok()?)?.take()
    }
}
