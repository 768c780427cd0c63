// SPDX-License-Identifier: GPL-2.0

//! The states of a single connection, and what an event means in each of them.
//!
//! ```text
//! client:  Init ──► Resolving ──► Connecting ──► Connected
//!                    ▲      │         │  │           │
//!                    └─ Delay ◄───────┘  │           │
//!                         ▲              │           │
//!                         └─ Disconnecting ◄─────────┘
//!
//! server:  Waiting ───────────────► Connecting ──► Connected
//!             ▲                         │            │
//!             └──── Disconnecting ◄─────┴────────────┘
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
    /// Lost, but to be made again once the old queue pair has given everything back.
    Disconnecting,
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
    (State::Connecting, State::Disconnecting),
    (State::Connected, State::Disconnecting),
    (State::Disconnecting, State::Waiting),
    (State::Disconnecting, State::Delay),
];

/// What happens to a connection from outside, and may end the state it is in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Event {
    /// A server: a REQ for the connection has come, and it is a good one.
    Req,
    /// The peer has accepted.
    Rep,
    /// The peer is ready: an RTU, or data before it.
    Ready,
    /// A REQ or a REP was not answered.
    NoAnswer,
    /// The peer has refused.
    Rej {
        /// And would take part in a new connection.
        recoverable: bool,
    },
    /// The peer disconnects.
    Dreq {
        /// And would take part in a new connection.
        recoverable: bool,
    },
    /// The queue pair is broken, by its own word or that of a completion.
    QpLost,
    /// A completion queue is broken.
    CqLost,
    /// The time for a recovery is over.
    TimedOut,
}

/// What is to be done about an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    /// What was waited for has come: go on.
    Proceed,
    /// Stay.
    Ignore,
    /// To `Disconnecting`, and from there up again.
    Recover,
    /// To `Error`.
    Fail,
}

impl State {
    /// Returns whether `next` may follow.
    pub(crate) fn may_become(self, next: Self) -> bool {
        match next {
            Self::Error => self != Self::Error,
            _ => STEPS.contains(&(self, next)),
        }
    }

    /// What `event` means in this state.
    ///
    /// `can_recover`: the connection has been up, its processes want it recovered, and some of them
    /// are still there.
    pub(crate) fn on(self, event: Event, can_recover: bool) -> Step {
        let recover_if = |possible: bool| match possible && can_recover {
            true => Step::Recover,
            false => Step::Fail,
        };
        match (event, self) {
            // The peer has begun anew, so what there is here is of no use.
            (Event::Req, Self::Connecting | Self::Connected) if can_recover => Step::Recover,
            (Event::Req, Self::Waiting) => Step::Proceed,
            (Event::Req, _) => Step::Ignore,

            (Event::Rep | Event::Ready, Self::Connecting) => Step::Proceed,
            (Event::Rep | Event::Ready, Self::Disconnecting) => Step::Ignore,

            (Event::NoAnswer, Self::Connecting) => recover_if(true),

            (Event::Rej { recoverable }, Self::Connecting) => recover_if(recoverable),
            (Event::Rej { .. }, Self::Disconnecting) if can_recover => Step::Ignore,

            (Event::Dreq { .. }, Self::Disconnecting) => Step::Ignore,
            (Event::Dreq { recoverable }, Self::Connecting | Self::Connected) => {
                recover_if(recoverable)
            }

            (Event::QpLost, Self::Disconnecting) => Step::Ignore,
            (Event::QpLost, Self::Connecting | Self::Connected) => recover_if(true),

            (Event::TimedOut, Self::Connected | Self::Init) => Step::Ignore,

            _ => Step::Fail,
        }
    }
}
