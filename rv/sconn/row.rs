// SPDX-License-Identifier: GPL-2.0

//! What debugfs shows of a single connection.

use super::{
    state::State,
    Sconn, //
};
use crate::stats::Stats;

/// A copy of what there is to show.
pub(crate) struct Row {
    pub(crate) index: u8,
    pub(crate) state: State,
    /// For how many µs.
    pub(crate) state_us: u64,
    pub(crate) was_connected: bool,
    /// The number of the queue pair, 0 if there is none.
    pub(crate) qp: u32,
    /// Writes that fit into the send queue.
    pub(crate) depth: u32,
    pub(crate) stats: Stats,
}

impl Sconn {
    /// What there is to show now.
    pub(crate) fn row(&self) -> Row {
        let qp = self.link.lock().qp();
        let qp = qp.map_or(0, |qp| qp.number());
        let link = self.link.lock();
        Row {
            index: self.index,
            state: link.state(),
            state_us: link.in_state(),
            was_connected: link.was_connected,
            qp,
            depth: link.depth,
            stats: link.snapshot(self.index),
        }
    }
}
