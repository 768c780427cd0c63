// SPDX-License-Identifier: GPL-2.0

//! The states of a single connection.
//!
//! ```text
//! client:  Init ──► Resolving ──► Connecting ──► Connected
//!                    ▲      │         │              │
//!                    └─ Delay ◄───────┘              │
//! server:  Waiting ───────────────► Connecting ──► Connected
//!
//!          every state ──────────────────────────► Error
//! ```
//!
//! `core` only: also built and tested on the host.

/// A state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum State {
    /// A client that was not asked to connect yet.
    Init,
    /// A server that waits for a REQ.
    Waiting,
    /// A client that looks for the way to the peer.
    Resolving,
    /// A client that has sent a REQ, or a server that has sent a REP.
    Connecting,
    /// Usable.
    Connected,
    /// A client that makes a pause before it tries again.
    Delay,
    /// Of no use any more.
    Error,
}

/// Every step there is, other than into `Error`, which is possible from everywhere.
pub(crate) const STEPS: &[(State, State)] = &[
    (State::Init, State::Resolving),
    (State::Resolving, State::Connecting),
    (State::Resolving, State::Delay),
    (State::Connecting, State::Delay),
    (State::Delay, State::Resolving),
    (State::Waiting, State::Connecting),
    (State::Connecting, State::Connected),
];

impl State {
    /// Returns whether `next` may follow.
    pub(crate) fn may_become(self, next: Self) -> bool {
        match next {
            Self::Error => self != Self::Error,
            _ => STEPS.contains(&(self, next)),
        }
    }
}
