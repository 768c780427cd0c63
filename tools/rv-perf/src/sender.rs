// SPDX-License-Identifier: GPL-2.0

//! The client's loop: keep a window of writes under way.

use std::ops::Range;
use std::time::Instant;

use rv_client::{
    Access,
    Buffer,
    Event,
    Mr,
    Write, //
};

use crate::control::Control;
use crate::failure::{
    Failure,
    Result, //
};
use crate::latency::Latency;
use crate::message::{
    Message,
    Ready,
    Slot, //
};
use crate::plan::Plan;
use crate::progress::Progress;
use crate::sequence::low;
use crate::session::Session;
use crate::source::Source;
use crate::wait::{
    Backoff,
    Deadline, //
};

/// A write under way; its `wr_id` is its place in the table.
struct Flight {
    number: u64,
    length: u64,
    source: Mr,
    /// When it was posted.
    posted: Instant,
}

/// Where the data is before it is sent.
pub(crate) struct Memory {
    buffer: Buffer,
    blocks: usize,
    stride: usize,
}

impl Memory {
    /// Allocates `blocks` blocks for the writes of `plan`.
    pub(crate) fn new(plan: &Plan, blocks: u32) -> Result<Self> {
        // CAST: The caller limits both; what does not fit into memory is refused by it.
        let (stride, blocks) = (plan.stride() as usize, blocks as usize);
        Ok(Self {
            buffer: Buffer::new(stride.saturating_mul(blocks))?,
            blocks,
            stride,
        })
    }

    /// Returns the memory of the flight at `place`.
    fn range(&self, place: usize, length: u64) -> Range<usize> {
        let start = (place % self.blocks) * self.stride;
        // CAST: At most a block, which is in memory.
        start..start + length as usize
    }
}

/// Where the data goes.
pub(crate) struct Target {
    /// The receiver's memory.
    pub(crate) ready: Ready,
    /// The receiver's index in the job.
    pub(crate) rv_index: u32,
}

/// What a transfer needs on the sending side.
pub(crate) struct Sender<'a> {
    /// The connection.
    pub(crate) session: &'a mut Session,
    /// The way to hear of credits, and of bad news.
    pub(crate) control: &'a mut Control,
    /// How the data is cut.
    pub(crate) plan: Plan,
    /// The data.
    pub(crate) source: &'a mut Source,
    /// Where it is.
    pub(crate) memory: Memory,
    /// Where it goes.
    pub(crate) target: &'a Target,
    /// Look for completions without a pause.
    pub(crate) busy_poll: bool,
}

/// What a transfer has shown on the sending side.
pub(crate) struct Sent {
    /// The receiver has already said that everything arrived, which it may notice before we see the
    /// last completion.
    pub(crate) has_arrived: bool,
    /// How long the writes took.
    pub(crate) latency: Latency,
}

impl Sender<'_> {
    /// Sends everything, with at most `window` writes under way, until all completions are there.
    pub(crate) fn run(self, window: u32, progress: &mut Progress) -> Result<Sent> {
        Flights::new(self, window)?.run(progress)
    }
}

/// The writes of a transfer, and how far it is.
struct Flights<'a> {
    sender: Sender<'a>,
    table: Vec<Option<Flight>>,
    /// Free places in `table`.
    free: Vec<usize>,
    /// A place whose write waits for room in the queues of the module.
    stalled: Option<usize>,
    /// Number of the next write to prepare.
    next: u64,
    /// Writes that are done.
    completed: u64,
    /// The receiver lends memory for all writes below this number.
    lent: u64,
    /// The receiver has everything.
    arrived: bool,
    /// How long the writes took.
    latency: Latency,
}

impl<'a> Flights<'a> {
    /// Starts with nothing under way.
    fn new(sender: Sender<'a>, window: u32) -> Result<Self> {
        Ok(Self {
            lent: sender.target.ready.credits,
            sender,
            table: (0..window).map(|_| None).collect(),
            // CAST: The window is small.
            free: (0..window as usize).rev().collect(),
            stalled: None,
            next: 0,
            completed: 0,
            arrived: false,
            latency: Latency::new()?,
        })
    }

    /// Keeps the window full until all is done.
    fn run(mut self, progress: &mut Progress) -> Result<Sent> {
        let mut backoff = Backoff::new(self.sender.busy_poll);
        let mut deadline = Deadline::new(self.sender.control.timeout());
        while self.completed < self.sender.plan.writes() {
            let reaped = self.reap(progress)?;
            let posted = self.post_all()?;
            let listens = self.next >= self.lent || backoff.is_long();
            if reaped || posted || (listens && self.take_credits()?) {
                backoff.reset();
                deadline.reset();
                continue;
            }
            self.sender.control.interrupt().check()?;
            deadline.check("no write was completed")?;
            backoff.wait();
        }
        Ok(Sent {
            has_arrived: self.arrived,
            latency: self.latency,
        })
    }

    /// Takes all completions out of the ring.
    fn reap(&mut self, progress: &mut Progress) -> Result<bool> {
        let mut any = false;
        while let Some(event) = self.sender.session.ring.poll()? {
            progress.add(self.complete(event)?);
            any = true;
        }
        Ok(any)
    }

    /// Ends the flight that an event is about, and returns its bytes.
    fn complete(&mut self, event: Event) -> Result<u64> {
        let Event::Sent { status, wr_id, .. } = event else {
            return Err(Failure::Local(format!("unexpected event: {event:?}")));
        };
        let place = usize::try_from(wr_id).unwrap_or(usize::MAX);
        let flight = self.table.get_mut(place).and_then(Option::take);
        let flight = flight.ok_or_else(|| {
            Failure::Local(format!(
                "completion of a write that is not under way: {event:?}"
            ))
        })?;
        if !status.is_success() {
            return Err(Failure::Peer(format!(
                "write {} failed: {status}",
                flight.number
            )));
        }
        self.latency.add(flight.posted.elapsed());
        flight.source.deregister()?;
        self.free.push(place);
        self.completed += 1;
        Ok(flight.length)
    }

    /// Posts as many writes as there is room for.
    fn post_all(&mut self) -> Result<bool> {
        let mut any = false;
        while let Some(place) = self.prepare()? {
            if !self.post(place)? {
                self.stalled = Some(place);
                break;
            }
            any = true;
        }
        Ok(any)
    }

    /// Returns the next write to post, with its data in memory.
    fn prepare(&mut self) -> Result<Option<usize>> {
        if let Some(place) = self.stalled.take() {
            return Ok(Some(place));
        }
        let number = self.next;
        if number >= self.sender.plan.writes().min(self.lent) {
            return Ok(None);
        }
        let Some(place) = self.free.pop() else {
            return Ok(None);
        };
        let flight = self.load(number, place)?;
        if let Some(entry) = self.table.get_mut(place) {
            *entry = Some(flight);
        }
        self.next += 1;
        Ok(Some(place))
    }

    /// Brings the data of a write into memory that the device may read.
    fn load(&mut self, number: u64, place: usize) -> Result<Flight> {
        let Sender {
            session,
            plan,
            source,
            memory,
            ..
        } = &mut self.sender;
        let length = plan.length(number);
        let range = memory.range(place, length);
        source.load(number, plan.position(number), &memory.buffer, range.clone())?;
        let attachment = &session.attachment;
        Ok(Flight {
            number,
            length,
            source: attachment.register(&memory.buffer, range, Access::Source)?,
            posted: Instant::now(),
        })
    }

    /// Posts a write; `false` when the queues of the module are full.
    fn post(&mut self, place: usize) -> Result<bool> {
        let Some(Some(flight)) = self.table.get(place) else {
            return Ok(true);
        };
        let slot = self.slot(flight.number)?;
        let Sender {
            session, target, ..
        } = &self.sender;
        let write = Write {
            source: &flight.source,
            offset: 0,
            length: flight.length,
            remote_address: slot.iova,
            rkey: slot.rkey,
            imm: session.layout.encode(target.rv_index, low(flight.number))?,
            // CAST: A place in a small table.
            wr_id: place as u64,
        };
        let posted = Instant::now();
        let outcome = session.conn.post(&write);
        if let Some(Some(flight)) = self.table.get_mut(place) {
            flight.posted = posted;
        }
        match outcome {
            Ok(_) => Ok(true),
            Err(error) if error.is_transient() => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the receiver's memory for a write.
    fn slot(&self, number: u64) -> Result<Slot> {
        let slots = &self.sender.target.ready.slots;
        // CAST: Below the number of slots.
        let place = number.checked_rem(slots.len() as u64).unwrap_or(0) as usize;
        let slot = slots.get(place).copied();
        slot.ok_or_else(|| Failure::Peer("the server offers no memory".into()))
    }

    /// Looks for credits, and for bad news.
    fn take_credits(&mut self) -> Result<bool> {
        let control = &mut *self.sender.control;
        let mut any = false;
        while !self.arrived {
            let Some(message) = control.poll()? else {
                return Ok(any);
            };
            match message {
                Message::Arrived if self.next == self.sender.plan.writes() => self.arrived = true,
                Message::Credit(done) if done <= self.next => {
                    let credits = self.sender.target.ready.credits;
                    self.lent = self.lent.max(done.saturating_add(credits));
                }
                other => return Err(unexpected(&other)),
            }
            any = true;
        }
        control.watch()?;
        Ok(any)
    }
}

/// Says that the peer does not keep to the protocol.
pub(crate) fn unexpected(message: &Message) -> Failure {
    let text = format!("{message:?}");
    let kind = text.split('(').next().unwrap_or_default();
    Failure::Peer(format!("the peer sent `{kind}` out of turn"))
}
