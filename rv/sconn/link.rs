// SPDX-License-Identifier: GPL-2.0

//! What the data path sees of a single connection: state, queue pair, statistics.

use super::{
    data::Pipe,
    state::State, //
};
use crate::{
    conn::Shared,
    stats::Stats,
    trace,
    wire::Role, //
};
use kernel::{
    sync::Arc,
    time::{
        Instant,
        Monotonic, //
    }, //
};
use rdma::qp::Qp;

/// The hot part of a single connection, behind a spin lock.
pub(super) struct Link {
    /// The connection's name and its own, for traces.
    conn_handle: u64,
    index: u8,
    state: State,
    /// When `state` was entered.
    since: Instant<Monotonic>,
    pub(super) was_connected: bool,
    pub(super) qp: Option<Arc<Qp<Pipe>>>,
    /// Writes that fit into the send queue.
    pub(super) depth: u32,
    pub(super) stats: Stats,
}

impl Link {
    pub(super) fn new(shared: &Shared, index: u8, depth: u32) -> Self {
        Self {
            conn_handle: shared.conn_handle,
            index,
            state: match shared.role {
                Role::Server => State::Waiting,
                Role::Client => State::Init,
            },
            since: Instant::now(),
            was_connected: false,
            qp: None,
            depth,
            stats: Stats::default(),
        }
    }

    pub(super) fn state(&self) -> State {
        self.state
    }

    /// Enters `next` if it may follow, and adds the time spent in the state before.
    pub(super) fn enter(&mut self, next: State) -> bool {
        if !self.state.may_become(next) {
            return false;
        }
        let spent = u64::try_from(self.since.elapsed().as_micros_ceil()).unwrap_or(0);
        let stats = &mut self.stats;
        match self.state {
            State::Waiting => stats.wait_time += spent,
            State::Resolving => stats.resolve_time += spent,
            State::Connecting => stats.connect_time += spent,
            State::Connected => stats.connected_time += spent,
            State::Init | State::Delay | State::Error => {}
        }
        trace::conn_state(self.conn_handle, self.index, &self.state, &next, spent);
        self.state = next;
        self.since = Instant::now();
        self.was_connected |= next == State::Connected;
        true
    }

    /// The statistics up to now.
    pub(super) fn snapshot(&self, index: u8) -> Stats {
        let mut stats = self.stats;
        stats.index = index;
        if self.state == State::Connected {
            stats.connected_time +=
                u64::try_from(self.since.elapsed().as_micros_ceil()).unwrap_or(0);
        }
        stats
    }
}
