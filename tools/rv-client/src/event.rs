// SPDX-License-Identifier: GPL-2.0

//! One entry of the event ring.

use std::fmt;

use crate::abi;

// CAST: Sizes and offsets below 66.
/// Bytes of an entry.
pub(crate) const SIZE: usize = abi::RVC_EVENT_SIZE as usize;

// No alignment, and one byte more than one would expect: entries are read as bytes.
const _: () = assert!(SIZE == 65 && size_of::<abi::rv_event>() == SIZE);

/// Result of one piece of work, as the verbs number it (`enum ib_wc_status`).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Status(pub u8);

impl Status {
    /// Everything went well.
    pub const SUCCESS: Status = Status(0);

    /// Tells whether everything went well.
    pub fn is_success(self) -> bool {
        self == Self::SUCCESS
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.0 {
            0 => "success",
            1 => "local length error",
            2 => "local QP operation error",
            4 => "local protection error",
            5 => "flushed: the connection was closed or failed",
            6 => "memory window bind error",
            7 => "bad response",
            8 => "local access error",
            9 => "remote invalid request",
            10 => "remote access error: the peer refused the address or the key",
            11 => "remote operation error",
            12 => "transport retries exhausted: the peer does not answer",
            13 => "receiver-not-ready retries exhausted",
            20 => "response timeout",
            21 => "general error",
            _ => "unknown status",
        };
        write!(f, "{name} (status {})", self.0)
    }
}

/// What the ring reports.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Event {
    /// A write of ours is done; its memory may be used again.
    Sent {
        /// How it ended.
        status: Status,
        /// The number given to [`Conn::post`](crate::Conn::post).
        wr_id: u64,
        /// The connection, as [`Conn::conn_handle`](crate::Conn::conn_handle) gives it.
        conn_handle: u64,
        /// Bytes that were to be written.
        byte_len: u32,
    },
    /// The peer wrote into our memory, and the data is there.
    Received {
        /// How it ended; rv only reports good ones.
        status: Status,
        /// The immediate data, including our index in the top bits.
        imm: u32,
        /// The connection.
        conn_handle: u64,
        /// Bytes that were written.
        byte_len: u32,
    },
    /// An event of a type that this crate does not know.
    Unknown(u8),
}

impl Event {
    /// Reads the bytes of an entry.
    pub(crate) fn parse(bytes: &[u8; SIZE]) -> Self {
        // CAST: Constant offsets inside the entry.
        let status = Status(bytes[abi::RVC_EVENT_STATUS as usize]);
        let conn_handle = u64_at(bytes, abi::RVC_EVENT_CONN_HANDLE as usize);
        let byte_len = u32_at(bytes, abi::RVC_EVENT_BYTE_LEN as usize);
        match u32::from(bytes[abi::RVC_EVENT_TYPE as usize]) {
            abi::RV_WC_RDMA_WRITE => Event::Sent {
                status,
                wr_id: u64_at(bytes, abi::RVC_EVENT_WR_ID as usize),
                conn_handle,
                byte_len,
            },
            abi::RV_WC_RECV_RDMA_WITH_IMM => Event::Received {
                status,
                imm: u32_at(bytes, abi::RVC_EVENT_IMM_DATA as usize),
                conn_handle,
                byte_len,
            },
            _ => Event::Unknown(bytes[abi::RVC_EVENT_TYPE as usize]),
        }
    }
}

/// Reads a number at a constant offset.
fn u32_at(bytes: &[u8; SIZE], at: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[at..at + 4]);
    u32::from_ne_bytes(word)
}

/// Reads a number at a constant offset.
fn u64_at(bytes: &[u8; SIZE], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_ne_bytes(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An entry with known bytes at the offsets of the ABI.
    fn entry(kind: u8) -> [u8; SIZE] {
        let mut bytes = [0; SIZE];
        bytes[0] = kind;
        bytes[1] = 10;
        bytes[4..8].copy_from_slice(&0x8012_3456_u32.to_ne_bytes());
        bytes[9..17].copy_from_slice(&77_u64.to_ne_bytes());
        bytes[17..25].copy_from_slice(&0xfeed_u64.to_ne_bytes());
        bytes[25..29].copy_from_slice(&65536_u32.to_ne_bytes());
        bytes
    }

    #[test]
    fn send_completion() {
        let expected = Event::Sent {
            status: Status(10),
            wr_id: 77,
            conn_handle: 0xfeed,
            byte_len: 65536,
        };
        assert_eq!(Event::parse(&entry(0)), expected);
    }

    #[test]
    fn receive_completion() {
        let expected = Event::Received {
            status: Status(10),
            imm: 0x8012_3456,
            conn_handle: 0xfeed,
            byte_len: 65536,
        };
        assert_eq!(Event::parse(&entry(1)), expected);
    }

    #[test]
    fn unknown_type() {
        assert_eq!(Event::parse(&entry(9)), Event::Unknown(9));
    }
}
