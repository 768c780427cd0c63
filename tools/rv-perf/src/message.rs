// SPDX-License-Identifier: GPL-2.0

//! What the two sides tell each other over TCP. No payload is among it.
//!
//! ```text
//!     client                       server
//!       | attach                     |
//!       | ------- Hello -----------> | attach, make the connection
//!       | <------ Welcome ---------- |
//!       | make the connection        |
//!       | ------- Created ---------> | start connecting, register memory
//!       | <------ Ready ------------ |
//!       | start connecting           |
//!       | ======= RDMA writes =====> |
//!       | <------ Credit ----------- | memory may be used again
//!       | ------- Finished --------> |
//!       | <------ Arrived ---------- | everything is there and stored
//!       | <------ Done ------------- | check sum and statistics
//! ```
//!
//! `Busy` may come any number of times before `Done`. `Error` may come from either side at any time, and ends it.

use rv_client::{
    CacheStats,
    ConnStats,
    Endpoint,
    EventStats,
    JobKey,
    Role, //
};
use serde::{
    Deserialize,
    Serialize, //
};

use crate::plan::Plan;

/// Version of this protocol; both sides must have the same.
pub(crate) const PROTOCOL: u32 = 1;

/// A message.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) enum Message {
    /// Who the client is and what it wants to send.
    Hello(Box<Hello>),
    /// Who the server is.
    Welcome(Welcome),
    /// The client has made its end of the connection.
    Created,
    /// Where the server wants to have the data.
    Ready(Ready),
    /// The server is done with so many writes from the first on.
    Credit(u64),
    /// The client has seen the completions of all its writes.
    Finished(Box<Side>),
    /// The server has everything.
    Arrived,
    /// The server is still working on the check sum.
    Busy,
    /// The result as the server sees it.
    Done(Box<Done>),
    /// The sender of this message gives up.
    Error(String),
}

/// Who the client is and what it wants to send.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct Hello {
    /// [`PROTOCOL`].
    pub(crate) protocol: u32,
    /// Numeric user id: rv joins processes of one user only.
    pub(crate) uid: u32,
    /// Port of the client.
    pub(crate) endpoint: Endpoint,
    /// The job to join.
    pub(crate) job_key: JobKey,
    /// Queue pairs between the two nodes.
    pub(crate) num_conn: u8,
    /// Bits of the immediate that are the receiver's index.
    pub(crate) index_bits: u8,
    /// What will be sent.
    pub(crate) plan: Plan,
    /// Most writes under way.
    pub(crate) window: u32,
    /// Blocks of memory to use on each side, where the data does not count.
    pub(crate) buffers: u32,
    /// Name of the file that is sent, without directory.
    pub(crate) file: Option<String>,
    /// Whether check sums are wanted.
    pub(crate) verify: bool,
}

/// Who the server is.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct Welcome {
    /// Port of the server.
    pub(crate) endpoint: Endpoint,
    /// What to put into the top bits of immediates.
    pub(crate) rv_index: u32,
    /// Largest block that both sides can register.
    pub(crate) block: u64,
}

/// Where the server wants to have the data.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct Ready {
    /// The write of number n goes to slot n modulo their number.
    pub(crate) slots: Vec<Slot>,
    /// Writes that may be under way, or in the server's hands, at a time.
    pub(crate) credits: u64,
}

/// Memory of the server.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct Slot {
    /// Address for the device.
    pub(crate) iova: u64,
    /// Key of the registration.
    pub(crate) rkey: u32,
}

/// What one side has to report.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct Side {
    /// Its port.
    pub(crate) endpoint: Endpoint,
    /// Its number in the job.
    pub(crate) rv_index: u32,
    /// Whether it listened or connected.
    pub(crate) role: Role,
    /// Writes that it posted or got.
    pub(crate) writes: u64,
    /// Their bytes.
    pub(crate) bytes: u64,
    /// Counters of the MR cache.
    pub(crate) cache: CacheStats,
    /// Counters of the event ring.
    pub(crate) events: EventStats,
    /// Counters of the connection.
    pub(crate) conn: ConnStats,
}

/// The result as the server sees it.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct Done {
    /// The server's numbers.
    pub(crate) side: Side,
    /// SHA-256 of the data, if it was wanted.
    pub(crate) sha256: Option<String>,
    /// Where the file went.
    pub(crate) stored: Option<String>,
}
