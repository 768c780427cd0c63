// SPDX-License-Identifier: GPL-2.0

//! The server's loop: take writes out of the ring, store them, lend the memory again.

use std::ops::Range;

use rv_client::{
    Access,
    Buffer,
    Event,
    Mr, //
};

use crate::control::Control;
use crate::failure::{
    Failure,
    Result, //
};
use crate::message::{
    Message,
    Ready,
    Slot, //
};
use crate::plan::Plan;
use crate::progress::Progress;
use crate::sequence::Window;
use crate::session::Session;
use crate::sink::Sink;
use crate::wait::{
    Backoff,
    Deadline, //
};

/// Memory that the peer may write.
pub(crate) struct Memory {
    buffer: Buffer,
    registrations: Vec<Mr>,
    stride: usize,
}

impl Memory {
    /// Registers `slots` blocks for the writes of `plan`.
    pub(crate) fn register(session: &Session, plan: &Plan, slots: u32) -> Result<Self> {
        // CAST: The caller limits the sum of it to what fits into memory.
        let (stride, block) = (plan.stride() as usize, plan.block as usize);
        let buffer = Buffer::new(stride * slots as usize)?;
        let registrations = (0..slots as usize)
            .map(|slot| slot * stride)
            .map(|start| {
                let range = start..start + block;
                session.attachment.register(&buffer, range, Access::Target)
            })
            .collect::<rv_client::Result<_>>()?;
        Ok(Self {
            buffer,
            registrations,
            stride,
        })
    }

    /// Tells the sender where to write.
    pub(crate) fn ready(&self, credits: u64) -> Ready {
        let slot = |mr: &Mr| Slot {
            iova: mr.iova(),
            rkey: mr.rkey(),
        };
        Ready {
            slots: self.registrations.iter().map(slot).collect(),
            credits,
        }
    }

    /// Returns where the data of a write is.
    fn range(&self, number: u64, length: u64) -> Range<usize> {
        // CAST: A place in a small table, and the length of a block.
        let slots = self.registrations.len() as u64;
        let start = (number % slots) as usize * self.stride;
        start..start + length as usize
    }
}

/// What a transfer needs on the receiving side.
pub(crate) struct Receiver<'a> {
    session: &'a mut Session,
    control: &'a mut Control,
    plan: Plan,
    memory: &'a Memory,
    sink: &'a mut Sink,
    window: Window,
    credits: u64,
    /// The sender knows that we are done with so many writes.
    told: u64,
    bytes: u64,
}

impl<'a> Receiver<'a> {
    /// Prepares for a transfer in which the sender may be `credits` writes ahead.
    pub(crate) fn new(
        session: &'a mut Session,
        control: &'a mut Control,
        plan: Plan,
        memory: &'a Memory,
        sink: &'a mut Sink,
        credits: u64,
    ) -> Self {
        Self {
            session,
            control,
            plan,
            memory,
            sink,
            window: Window::new(credits),
            credits,
            told: 0,
            bytes: 0,
        }
    }

    /// Receives everything, and returns the number of bytes.
    pub(crate) fn run(mut self, progress: &mut Progress) -> Result<u64> {
        let mut backoff = Backoff::default();
        let mut deadline = Deadline::new(self.control.timeout());
        while self.window.base() < self.plan.writes() {
            if let Some(event) = self.session.ring.poll()? {
                progress.add(self.take(event)?);
                backoff.reset();
                deadline.reset();
                continue;
            }
            if backoff.is_long() {
                self.control.watch()?;
            }
            self.control.interrupt().check()?;
            deadline.check("no write arrived")?;
            backoff.wait();
        }
        Ok(self.bytes)
    }

    /// Takes one write, and returns its bytes.
    fn take(&mut self, event: Event) -> Result<u64> {
        let (number, length) = self.identify(event)?;
        let range = self.memory.range(number, length);
        let position = self.plan.position(number);
        self.sink.store(position, &self.memory.buffer, range)?;
        while let Some(number) = self.window.advance() {
            let range = self.memory.range(number, self.plan.length(number));
            self.sink.in_order(&self.memory.buffer, range)?;
        }
        self.bytes += length;
        self.lend()?;
        Ok(length)
    }

    /// Tells which write an event is about, and checks that it is one we wait for.
    fn identify(&mut self, event: Event) -> Result<(u64, u64)> {
        let Event::Received {
            status,
            imm,
            byte_len,
            ..
        } = event
        else {
            return Err(Failure::Local(format!("unexpected event: {event:?}")));
        };
        if !status.is_success() {
            return Err(Failure::Peer(format!("a write to us failed: {status}")));
        }
        let layout = self.session.layout;
        let (index, tag) = layout.decode(imm);
        let own = self.session.attachment.rv_index();
        if index != own {
            return Err(Failure::Local(format!(
                "a write for index {index} of the job came to index {own}"
            )));
        }
        let number = self.window.arrive(tag, layout.tag_mask());
        let number = number.filter(|number| *number < self.plan.writes());
        let number = number.ok_or_else(|| {
            Failure::Peer(format!("a write arrived that was not awaited: {event:?}"))
        })?;
        let length = self.plan.length(number);
        if u64::from(byte_len) != length {
            return Err(Failure::Peer(format!(
                "write {number} has {byte_len} bytes instead of {length}"
            )));
        }
        Ok((number, length))
    }

    /// Lends memory again, when there is enough of it to be worth a message.
    fn lend(&mut self) -> Result<()> {
        let done = self.window.base();
        let known = self.told.saturating_add(self.credits);
        if known >= self.plan.writes() || done - self.told < self.credits.div_ceil(4) {
            return Ok(());
        }
        self.told = done;
        self.control.send(&Message::Credit(done))
    }
}
