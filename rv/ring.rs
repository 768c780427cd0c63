// SPDX-License-Identifier: GPL-2.0

//! The event ring: completions, for one process, in memory it maps.
//!
//! The kernel is the only producer and owns the write index; the copy in shared memory is published
//! and never read back. The process owns the read index, which it may set to anything: a value
//! outside of the ring counts as "full". Whatever user space does, the kernel writes only inside of
//! the ring.
//!
//! Locks: `producer` is taken in process context only (completions run on a work queue) and has no
//! lock inside.

use crate::{
    abi,
    trace, //
};
use kernel::{
    mm::virt::VmaNew,
    new_spinlock,
    prelude::*,
    sync::{
        Arc,
        SpinLock, //
    },
    transmute::AsBytes, //
};
use rdma::{
    shared::SharedMemory,
    wc::Status, //
};

/// Offsets in the shared memory (`struct rv_ring_header`).
const HEAD: usize = core::mem::offset_of!(abi::rv_ring_header, head);
const TAIL: usize = core::mem::offset_of!(abi::rv_ring_header, tail);
const OVERFLOW: usize = core::mem::offset_of!(abi::rv_ring_header, overflow_cnt);
const ENTRIES: usize = core::mem::offset_of!(abi::rv_ring_header, entries);
const ENTRY_LEN: usize = size_of::<abi::rv_event>();

/// An event, before it has a form.
#[derive(Clone, Copy)]
pub(crate) enum Event {
    /// A write of this process has ended.
    Sent {
        /// How.
        status: Status,
        /// What the process gave with it.
        wr_id: u64,
        /// Bytes asked for.
        len: u32,
    },
    /// A write for this process has arrived.
    Received {
        /// Its immediate.
        imm: u32,
        /// Its bytes.
        len: u32,
    },
}

impl Event {
    fn to_abi(self, conn_handle: u64) -> abi::rv_event {
        let mut event = abi::rv_event::default();
        let (kind, wc) = match self {
            Self::Sent { status, wr_id, len } => (
                abi::RV_WC_RDMA_WRITE,
                abi::rv_event_wc {
                    // CAST: There are less than 30 statuses.
                    status: status.number() as u8,
                    wr_id,
                    conn_handle,
                    byte_len: len,
                    ..Default::default()
                },
            ),
            Self::Received { imm, len } => (
                abi::RV_WC_RECV_RDMA_WITH_IMM,
                abi::rv_event_wc {
                    imm_data: imm,
                    conn_handle,
                    byte_len: len,
                    ..Default::default()
                },
            ),
        };
        // CAST: The two types are 0 and 1.
        event.event_type = kind as u8;
        event.__bindgen_anon_1.wc = wc;
        event
    }
}

/// The producer's side.
struct Producer {
    /// Nothing is delivered before the process has mapped the ring.
    mapped: bool,
    tail: u32,
    overflows: u64,
    stats: abi::rv_event_stats_params_out,
}

/// The ring of one open file.
#[pin_data]
pub(crate) struct Ring {
    memory: SharedMemory,
    entries: u32,
    #[pin]
    producer: SpinLock<Producer>,
}

impl Ring {
    /// Makes a ring of `entries` entries, one of which always stays free.
    pub(crate) fn new(entries: u32) -> Result<Arc<Self>> {
        let len = usize::try_from(entries)?
            .checked_mul(ENTRY_LEN)
            .and_then(|len| len.checked_add(ENTRIES))
            .ok_or(EINVAL)?;
        Arc::pin_init(
            try_pin_init!(Self {
                memory: SharedMemory::new(len)?,
                entries,
                producer <- new_spinlock!(Producer {
                    mapped: false,
                    tail: 0,
                    overflows: 0,
                    stats: Default::default(),
                }),
            }),
            GFP_KERNEL,
        )
    }

    /// Maps the ring, once.
    ///
    /// # Errors
    ///
    /// `EINVAL` if it was mapped before, or the mapping is too short or does not start at offset 0.
    pub(crate) fn map(&self, vma: &VmaNew) -> Result {
        if core::mem::replace(&mut self.producer.lock().mapped, true) {
            return Err(EINVAL);
        }
        self.memory
            .map(vma)
            .inspect_err(|_| self.producer.lock().mapped = false)
    }

    /// Puts an event in the ring. A full ring loses it, and counts that.
    pub(crate) fn push(&self, event: Event, conn_handle: u64) {
        let mut producer = self.producer.lock();
        if !producer.mapped {
            return;
        }
        let next = match producer.tail + 1 {
            next if next >= self.entries => 0,
            next => next,
        };
        if self.is_full(next) {
            producer.overflows += 1;
            // The offset is one of the header, so this cannot fail.
            let _ = self.memory.store_u64(OVERFLOW, producer.overflows);
            producer.trace(trace::ring_overflow, event, conn_handle);
            return;
        }
        if self
            .write(producer.tail, next, &event.to_abi(conn_handle))
            .is_ok()
        {
            producer.trace(trace::ring_push, event, conn_handle);
            producer.tail = next;
            producer.count(event);
        }
    }

    /// Returns whether writing up to `next` would reach what the process has not read yet.
    fn is_full(&self, next: u32) -> bool {
        // ORDERING: Pairs with the consumer's store of `head` after it has read an entry.
        match self.memory.load_acquire(HEAD) {
            Ok(head) => head == next || head >= self.entries,
            Err(_) => true,
        }
    }

    fn write(&self, tail: u32, next: u32, event: &abi::rv_event) -> Result {
        let at = ENTRIES + usize::try_from(tail)? * ENTRY_LEN;
        self.memory.write(at, event.as_bytes())?;
        // ORDERING: Pairs with the consumer's load of `tail` before it reads the entry.
        self.memory.store_release(TAIL, next)
    }

    /// What there is to show now.
    pub(crate) fn row(&self) -> Row {
        let producer = self.producer.lock();
        let head = self.memory.load_acquire(HEAD).unwrap_or(0);
        Row {
            ring_entries: self.entries,
            ring_used: used(head, producer.tail, self.entries),
            ring_overflows: producer.overflows,
            ring_mapped: u8::from(producer.mapped),
            send_write_cqe: producer.stats.send_write_cqe,
            send_write_cqe_fail: producer.stats.send_write_cqe_fail,
            send_write_bytes: producer.stats.send_write_bytes,
            recv_write_cqe: producer.stats.recv_write_cqe,
            recv_write_bytes: producer.stats.recv_write_bytes,
        }
    }

    /// The statistics of what was put in the ring.
    pub(crate) fn stats(&self) -> abi::rv_event_stats_params_out {
        self.producer.lock().stats
    }
}

/// What debugfs shows of a ring. All 0 if there is none.
#[derive(Default)]
pub(crate) struct Row {
    pub(crate) ring_entries: u32,
    /// Entries that the process has not read.
    pub(crate) ring_used: u32,
    pub(crate) ring_overflows: u64,
    pub(crate) ring_mapped: u8,
    pub(crate) send_write_cqe: u64,
    pub(crate) send_write_cqe_fail: u64,
    pub(crate) send_write_bytes: u64,
    pub(crate) recv_write_cqe: u64,
    pub(crate) recv_write_bytes: u64,
}

/// The entries between the indices; all that there can be if the process has set nonsense.
fn used(head: u32, tail: u32, entries: u32) -> u32 {
    if head >= entries {
        entries.saturating_sub(1)
    } else if tail >= head {
        tail - head
    } else {
        tail.wrapping_add(entries).wrapping_sub(head)
    }
}

impl Producer {
    /// Traces what becomes of `event`, before the tail moves.
    #[inline(always)]
    fn trace(&self, what: impl FnOnce(u64, bool, u32, u32, u64), event: Event, conn: u64) {
        let (received, len) = match event {
            Event::Sent { len, .. } => (false, len),
            Event::Received { len, .. } => (true, len),
        };
        what(conn, received, len, self.tail, self.overflows);
    }

    fn count(&mut self, event: Event) {
        match event {
            Event::Sent { status, len, .. } if status == Status::SUCCESS => {
                self.stats.send_write_cqe += 1;
                self.stats.send_write_bytes += u64::from(len);
            }
            Event::Sent { .. } => self.stats.send_write_cqe_fail += 1,
            Event::Received { len, .. } => {
                self.stats.recv_write_cqe += 1;
                self.stats.recv_write_bytes += u64::from(len);
            }
        }
    }
}
