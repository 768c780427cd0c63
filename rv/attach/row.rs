// SPDX-License-Identifier: GPL-2.0

//! What debugfs shows of an attached file.

use super::Attachment;
use crate::{
    cache,
    ring, //
};
use rdma::user::{
    comm,
    COMM_LEN, //
};

/// A copy of what there is to show.
pub(crate) struct Row {
    pub(crate) mode: &'static str,
    /// 0 in USER mode, as index and port.
    pub(crate) job: u64,
    pub(crate) index: u16,
    pub(crate) port: u32,
    pub(crate) pid: i32,
    pub(crate) comm: [u8; COMM_LEN],
    /// The name of the cache.
    pub(crate) cache: u64,
    pub(crate) cache_stats: cache::Stats,
    pub(crate) ring: ring::Row,
}

impl Attachment {
    /// What there is to show now.
    ///
    /// # Context
    ///
    /// Does not sleep.
    pub(crate) fn row(&self) -> Row {
        let job = self.job().ok();
        Row {
            mode: if job.is_some() { "kernel" } else { "user" },
            job: job.map_or(0, |job| job.id()),
            index: self.index(),
            port: job.map_or(0, |job| job.identity().port),
            pid: self.cache.process().tgid(),
            comm: comm(self.cache.process()),
            cache: self.cache.id(),
            cache_stats: self.cache.stats(),
            ring: self
                .ring
                .as_ref()
                .map(|ring| ring.row())
                .unwrap_or_default(),
        }
    }
}
