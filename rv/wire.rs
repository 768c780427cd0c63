// SPDX-License-Identifier: GPL-2.0

//! What two nodes say to each other in the private data of CM messages, and who of them listens.
//!
//! Byte for byte the protocol of the C module, version 2, so that clusters can be mixed. `core`
//! only: also built and tested on the host.

/// First 8 bytes of all private data.
const MAGIC: u64 = 0x0012_5550_534d_2121;
/// The version of the protocol we speak.
const VERSION: u32 = 2;

/// The longest job key.
pub(crate) const JOB_KEY_LEN: usize = 16;

/// Why a node refuses a REQ or a REP.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub(crate) enum Refusal {
    /// The REQ is malformed.
    InvalidReq = 1,
    /// The REP is malformed.
    InvalidRep = 2,
    /// No such job, or no such connection in it.
    NotFound = 3,
    /// The path does not agree with what the application has said.
    Mismatch = 4,
    /// Something failed here.
    LocalError = 5,
    /// The connection is in error for good.
    InError = 6,
    /// The connection is up, or on its way up; this side takes it down to make a new one.
    Connecting = 7,
    /// This side is still taking the old connection down.
    Disconnecting = 8,
    /// This side does not listen for the connection.
    NotListener = 9,
    /// It has taken too long.
    TimedOut = 10,
}

/// Why a node disconnects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub(crate) enum Disconnect {
    /// An RTU came when none was due.
    UnexpectedRtu = 2,
    /// The queue pair is in error.
    QpError = 4,
    /// A completion queue is in error.
    CqError = 5,
    /// It has taken too long.
    TimedOut = 6,
}

/// The job that a REQ is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct JobKey {
    bytes: [u8; JOB_KEY_LEN],
    len: u8,
}

impl JobKey {
    /// Returns `None` for a key that is too long.
    pub(crate) fn new(bytes: [u8; JOB_KEY_LEN], len: u8) -> Option<Self> {
        (usize::from(len) <= JOB_KEY_LEN).then_some(Self { bytes, len })
    }

    /// The bytes that count.
    pub(crate) fn significant(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or(&[])
    }

    /// Returns whether both name the same job. Bytes past the length do not count.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.significant() == other.significant()
    }
}

/// The private data of a REQ.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Req {
    /// Which of the queue pairs between the two nodes.
    pub(crate) index: u8,
    /// The job.
    pub(crate) job_key: JobKey,
    /// The user, numbered as in the initial user namespace.
    pub(crate) uid: u32,
}

/// The bytes of a number at `at`, as far as there are any.
fn bytes_at<const N: usize>(data: &[u8], at: usize) -> Option<[u8; N]> {
    data.get(at..at + N)?.try_into().ok()
}

/// The version, if the data start as ours do.
fn version(data: &[u8]) -> Option<u32> {
    let magic = u64::from_le_bytes(bytes_at(data, 0)?);
    let version = u32::from_le_bytes(bytes_at(data, 8)?);
    (magic == MAGIC).then_some(version)
}

/// Private data that start with magic and version.
fn header<const N: usize>() -> [u8; N] {
    let mut data = [0; N];
    put(&mut data, 0, &MAGIC.to_le_bytes());
    put(&mut data, 8, &VERSION.to_le_bytes());
    data
}

fn put(data: &mut [u8], at: usize, bytes: &[u8]) {
    for (to, from) in data.iter_mut().skip(at).zip(bytes) {
        *to = *from;
    }
}

impl Req {
    /// The bytes to send.
    pub(crate) fn emit(&self) -> [u8; 40] {
        let mut data = header::<40>();
        put(&mut data, 14, &[self.index, self.job_key.len]);
        put(&mut data, 16, &self.job_key.bytes);
        put(&mut data, 32, &self.uid.to_le_bytes());
        data
    }

    /// Reads what a peer has sent. A peer of a later version sends at least this.
    pub(crate) fn parse(data: &[u8]) -> Result<Self, Refusal> {
        let parse = || {
            if version(data)? < VERSION {
                return None;
            }
            let [index, len] = bytes_at(data, 14)?;
            Some(Self {
                index,
                job_key: JobKey::new(bytes_at(data, 16)?, len)?,
                uid: u32::from_le_bytes(bytes_at(data, 32)?),
            })
        };
        parse().ok_or(Refusal::InvalidReq)
    }
}

/// The private data of a REP.
pub(crate) fn emit_rep() -> [u8; 16] {
    header()
}

/// Reads the private data of a REP.
pub(crate) fn parse_rep(data: &[u8]) -> Result<(), Refusal> {
    match version(data) {
        Some(VERSION) => Ok(()),
        _ => Err(Refusal::InvalidRep),
    }
}

/// The end of a connection as the peer explains it: private data of a REJ or a DREQ.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Farewell {
    /// The reason, a [`Refusal`] or a [`Disconnect`]; 0 is none: a peer that closes normally says
    /// nothing.
    pub(crate) reason: u32,
    /// Whether the peer would take part in a new connection.
    pub(crate) recoverable: bool,
}

impl Farewell {
    /// No explanation.
    pub(crate) const NONE: Self = Self {
        reason: 0,
        recoverable: false,
    };

    /// The explanation of a REJ: final, unless this side is making room for a new connection.
    pub(crate) fn refuse(reason: Refusal) -> Self {
        Self {
            // CAST: The enum is a `u32`.
            reason: reason as u32,
            recoverable: matches!(reason, Refusal::Connecting | Refusal::Disconnecting),
        }
    }

    /// The explanation of a DREQ, and whether this side would take part in a new connection.
    pub(crate) fn disconnect(reason: Disconnect, recoverable: bool) -> Self {
        Self {
            // CAST: The enum is a `u32`.
            reason: reason as u32,
            recoverable,
        }
    }

    /// The bytes to send.
    pub(crate) fn emit(&self) -> [u8; 24] {
        let mut data = header::<24>();
        put(&mut data, 12, &self.reason.to_le_bytes());
        put(&mut data, 16, &[u8::from(self.recoverable)]);
        data
    }

    /// Reads what a peer has sent. Anything that is not ours is no explanation.
    pub(crate) fn parse(data: &[u8]) -> Self {
        let parse = || {
            if version(data)? != VERSION {
                return None;
            }
            let [recoverable] = bytes_at(data, 16)?;
            Some(Self {
                reason: u32::from_le_bytes(bytes_at(data, 12)?),
                recoverable: recoverable != 0,
            })
        };
        parse().unwrap_or(Self::NONE)
    }
}

/// Who of two nodes does what to get connected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    /// Waits for the other's REQ.
    Server,
    /// Sends the REQ.
    Client,
}

impl Role {
    /// The lower address listens, the higher one connects. `None` if both are the same node.
    pub(crate) fn of<A: Ord>(local: A, remote: A) -> Option<Self> {
        match local.cmp(&remote) {
            core::cmp::Ordering::Less => Some(Self::Server),
            core::cmp::Ordering::Greater => Some(Self::Client),
            core::cmp::Ordering::Equal => None,
        }
    }
}

/// The process that an arriving write is for: the upper `index_bits` bits of its immediate.
pub(crate) fn index_of(imm: u32, index_bits: u8) -> u16 {
    let index = imm
        .checked_shr(32 - u32::from(index_bits.min(12)))
        .unwrap_or(0);
    // CAST: At most 12 bits are left.
    index as u16
}
