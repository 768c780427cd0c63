// SPDX-License-Identifier: GPL-2.0

//! Single connections: one queue pair to another node, from the first REQ to its end.
//!
//! A single connection is one of the `num_conn` that make up a [`Conn`](crate::conn::Conn). Its
//! states are in [`state`], the ways up in [`client`] and [`server`], the data path in [`data`]; this
//! file has what they share, and takes it down.
//!
//! What happens comes from four sides, each in process context: the CONNECT ioctl, address
//! resolution, the connection manager, and work items (for what is noticed where one must not
//! sleep). All of them take `control` first and then work on the state, so they are serialised.
//!
//! Lock order: `control` (may sleep), then `link` (spins; the data path takes only this). Neither
//! is held where one would wait for a handler: connection identifiers, resolutions and queue pairs
//! are taken out under the lock and dropped after it.
//!
//! Teardown, in [`Sconn::take_down`]: no more attempts; the identifier goes (which tells the peer);
//! the queue pair is drained for a bounded time and destroyed, which hands what is left in it back
//! as flushed.

mod client;
pub(crate) mod data;
mod link;
mod server;
pub(crate) mod state;
mod trace;

pub(crate) use data::Outstanding;

use crate::{
    conn::Shared,
    stats::Stats,
    wire::{
        Disconnect,
        Farewell,
        Refusal,
        Role, //
    }, //
};
use data::Pipe;
use kernel::{
    impl_has_delayed_work,
    impl_has_work,
    new_delayed_work,
    new_mutex,
    new_spinlock,
    new_work,
    prelude::*,
    sync::{
        atomic::{
            AtomicFlag,
            Full,
            Relaxed, //
        },
        Arc,
        ArcBorrow,
        Mutex,
        SpinLock, //
    },
    time::Msecs,
    workqueue::{
        DelayedWork,
        Work,
        WorkItem, //
    }, //
};
use link::Link;
use rdma::{
    addr::{
        Resolution,
        Resolve, //
    },
    cm::{
        self,
        Event,
        Id,
        IdRef, //
    },
    path::{
        Record,
        Route, //
    },
    qp::{
        Init,
        PollContext,
        Qp, //
    }, //
};
use state::State;

/// How long teardown waits for outstanding writes to be flushed.
const DRAIN_TIMEOUT: Msecs = 2_000;

/// Parameters of REQ and REP. Both nodes need not agree on them.
mod cm_param {
    /// Resends without an ACK. 7 would be endless on soft-RoCE, where a dead link would never be
    /// noticed.
    pub(super) const RETRY_COUNT: u8 = 6;
    /// Resends when the peer has no receive: endless.
    pub(super) const RNR_RETRY_COUNT: u8 = 7;
    /// Repetitions of a message of the connection manager.
    pub(super) const MAX_CM_RETRIES: u8 = 15;
    /// Time to answer a message: 4.096 µs · 2^17, about half a second.
    pub(super) const RESPONSE_TIMEOUT: u8 = 17;
    /// The delay that a missing receive asks for: 0.64 ms.
    pub(super) const MIN_RNR_TIMER: u8 = 12;
}

/// The cold part of a single connection.
struct Control {
    id: Option<Id<Sconn>>,
    resolution: Option<Resolution<Sconn>>,
    /// The path of CONN_CONNECT.
    path: Option<Record>,
    /// Attempts left to resolve the address.
    resolve_retries: u32,
    /// Attempts left to send a REQ.
    req_retries: u32,
    /// Being taken down: nothing is begun any more.
    closed: bool,
}

/// A single connection.
#[pin_data]
pub(crate) struct Sconn {
    pub(in crate::sconn) shared: Arc<Shared>,
    pub(in crate::sconn) index: u8,
    #[pin]
    control: Mutex<Control>,
    #[pin]
    pub(in crate::sconn) link: SpinLock<Link>,
    /// Data has come before the RTU; for `noticed`.
    comm_est: AtomicFlag,
    /// The queue pair is broken; for `noticed`.
    lost: AtomicFlag,
    #[pin]
    noticed: Work<Sconn, { work::NOTICED }>,
    #[pin]
    retry: DelayedWork<Sconn, { work::RETRY }>,
    #[pin]
    teardown: Work<Sconn, { work::TEARDOWN }>,
}

/// Numbers of the work items.
mod work {
    pub(super) const NOTICED: u64 = 0;
    pub(super) const RETRY: u64 = 1;
    pub(super) const TEARDOWN: u64 = 2;
}

impl_has_work! {
    impl HasWork<Self, { work::NOTICED }> for Sconn { self.noticed }
    impl HasWork<Self, { work::TEARDOWN }> for Sconn { self.teardown }
}

impl_has_delayed_work! {
    impl HasDelayedWork<Self, { work::RETRY }> for Sconn { self.retry }
}

impl Sconn {
    /// Makes a single connection with its queue pair.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, `EINVAL` if the device's queues are too short, or the driver's error.
    pub(crate) fn new(shared: &Arc<Shared>, index: u8) -> Result<Arc<Self>> {
        let depth = shared.job.params().qp_depth();
        let sconn = Arc::pin_init(
            pin_init!(Self {
                shared: shared.clone(),
                index,
                control <- new_mutex!(Control {
                    id: None,
                    resolution: None,
                    path: None,
                    resolve_retries: client::RESOLVE_RETRIES,
                    req_retries: client::REQ_RETRIES,
                    closed: false,
                }),
                link <- new_spinlock!(Link::new(shared, *index, depth)),
                comm_est: AtomicFlag::new(false),
                lost: AtomicFlag::new(false),
                noticed <- new_work!("rv_sconn::noticed"),
                retry <- new_delayed_work!("rv_sconn::retry"),
                teardown <- new_work!("rv_sconn::teardown"),
            }),
            GFP_KERNEL,
        )?;
        let init = Init {
            max_send_wr: depth,
            max_recv_wr: depth,
            poll: PollContext::Workqueue,
        };
        let qp = Qp::new(shared.job.pd(), &init, Pipe::new(&sconn)?)?;
        let qp = Arc::new(qp, GFP_KERNEL)?;
        sconn.link.lock().qp = Some(qp);
        Ok(sconn)
    }

    /// Enters a state, if it may follow the present one.
    fn enter(&self, next: State) -> bool {
        self.link.lock().enter(next)
    }

    fn state(&self) -> State {
        self.link.lock().state()
    }

    fn qp(&self) -> Result<Arc<Qp<Pipe>>> {
        self.link.lock().qp.clone().ok_or(EIO)
    }

    /// Changes the statistics.
    fn count(&self, change: impl FnOnce(&mut Stats)) {
        change(&mut self.link.lock().stats);
    }

    // --- What the ioctls ask -----------------------------------------------------------------

    /// Connects along `path`, or compares it with the path there is already.
    ///
    /// # Errors
    ///
    /// `EEXIST` if that is another one; `ENOMEM`.
    pub(crate) fn connect(self: &Arc<Self>, path: &Record) -> Result {
        let mut control = self.control.lock();
        match &control.path {
            // Without a LID, which only RoCE has, a path counts as none: the last one holds.
            Some(known) if known.dlid != 0 => {
                return if is_same_path(known, path) {
                    Ok(())
                } else {
                    Err(EEXIST)
                };
            }
            _ => control.path = Some(*path),
        }
        if self.shared.role == Role::Server || self.state() != State::Init || control.closed {
            return Ok(());
        }
        control.id = Some(self.new_id().inspect_err(|_| self.fail())?);
        self.begin(&mut control);
        Ok(())
    }

    /// Returns whether the connection is up, or was.
    ///
    /// # Errors
    ///
    /// `EIO` if it is in error.
    pub(crate) fn is_connected(&self) -> Result<bool> {
        let link = self.link.lock();
        match link.state() {
            State::Connected => Ok(true),
            State::Error => Err(EIO),
            _ => Ok(link.was_connected),
        }
    }

    /// How often the connection has come up.
    ///
    /// # Errors
    ///
    /// `EIO` if it is in error.
    pub(crate) fn conn_count(&self) -> Result<u32> {
        let link = self.link.lock();
        match link.state() {
            State::Error => Err(EIO),
            _ => Ok(link.stats.conn_recovery + u32::from(link.was_connected)),
        }
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.state() == State::Error
    }

    pub(crate) fn was_connected(&self) -> bool {
        self.link.lock().was_connected
    }

    pub(crate) fn stats(&self) -> Stats {
        self.link.lock().snapshot(self.index)
    }

    // --- Going down ------------------------------------------------------------------------------

    fn refuse(&self, id: &IdRef, code: u32, refusal: Refusal) {
        let sent = id.send_rej(code, &Farewell::refuse(refusal).emit());
        // CAST: The enum is a `u32`.
        if self.trace_sent(c"REJ", refusal as u32, sent).is_ok() {
            self.count(|stats| stats.rej_sent += 1);
        }
    }

    fn disconnect(&self, id: &IdRef, why: Disconnect) {
        let sent = id.send_dreq(&Farewell::disconnect(why).emit());
        // CAST: The enum is a `u32`.
        if self.trace_sent(c"DREQ", why as u32, sent).is_ok() {
            self.count(|stats| stats.dreq_sent += 1);
        }
    }

    /// Enters `Error`: what is outstanding is flushed, and with it every process is told.
    fn fail(&self) {
        let was_connected = self.state() == State::Connected;
        if !self.enter(State::Error) {
            return;
        }
        if was_connected {
            rdma::ratelimited!(
                pr_info,
                "connection {}.{} is lost\n",
                self.shared.conn_handle,
                self.index
            );
        }
        self.flush();
    }

    /// Moves the queue pair to ERROR.
    fn flush(&self) {
        if let Ok(qp) = self.qp() {
            qp.error();
        }
    }

    /// The peer disconnects. Without a reason it has just come to its end.
    fn on_dreq(&self, id: &IdRef, private: &[u8]) {
        self.count(|stats| stats.dreq_recv += 1);
        if self.trace_sent(c"DREP", 0, id.send_drep()).is_ok() {
            self.count(|stats| stats.drep_sent += 1);
        }
        if Farewell::parse(private) == Farewell::NONE {
            self.enter(State::Error);
            self.flush();
        } else {
            self.fail();
        }
    }

    /// Notes that the queue pair is broken, from any context.
    pub(in crate::sconn) fn notice_loss(self: &Arc<Self>) {
        self.lost.store(true, Relaxed);
        self.notice();
    }

    /// Notes that data has come before the RTU, from any context.
    pub(in crate::sconn) fn notice_comm_est(self: &Arc<Self>) {
        self.comm_est.store(true, Relaxed);
        self.notice();
    }

    fn notice(self: &Arc<Self>) {
        let queue = self.shared.job.device().workqueue().queue();
        let _ = queue.enqueue::<_, { work::NOTICED }>(self.clone());
    }

    /// Takes the connection down, in the background. To be called once.
    pub(crate) fn shut_down(self: &Arc<Self>) {
        let queue = self.shared.job.device().workqueue().queue();
        let _ = queue.enqueue::<_, { work::TEARDOWN }>(self.clone());
    }

    fn take_down(&self) {
        let (id, resolution) = {
            let mut control = self.control.lock();
            control.closed = true;
            (control.id.take(), control.resolution.take())
        };
        drop(resolution);
        // Tells the peer: without private data, which is how a normal end looks.
        drop(id);
        self.enter(State::Error);
        let qp = self.link.lock().qp.take();
        if let Some(qp) = qp {
            if !qp.drain(DRAIN_TIMEOUT) {
                pr_warn!(
                    "connection {}.{}: the device has not flushed all requests\n",
                    self.shared.conn_handle,
                    self.index
                );
            }
        }
    }
}

/// Returns whether two processes ask for the same path.
fn is_same_path(one: &Record, other: &Record) -> bool {
    let essence = |path: &Record| {
        Record {
            // Not part of what makes a path.
            reversible: false,
            numb_path: 0,
            mtu_selector: 0,
            rate_selector: 0,
            packet_life_time_selector: 0,
            preference: 0,
            ..*path
        }
    };
    essence(one) == essence(other)
}

impl Resolve for Sconn {
    fn resolved(self: ArcBorrow<'_, Self>, outcome: Result<Route>) {
        let sconn = Arc::from(self);
        let mut control = sconn.control.lock();
        if sconn.state() != State::Resolving || control.closed {
            return;
        }
        match outcome {
            Ok(route) => sconn.send_req(&mut control, Some(route)),
            Err(e) => sconn.on_unresolved(&mut control, e),
        }
    }
}

impl cm::Handler for Sconn {
    fn event(self: ArcBorrow<'_, Self>, id: &IdRef, event: Event<'_>) {
        let sconn = Arc::from(self);
        let mut guard = sconn.control.lock();
        let control = &mut *guard;
        let current = control.id.as_ref().is_some_and(|own| own.is(id));
        if !current {
            return;
        }
        sconn.trace_event(&event);
        match event {
            Event::Rep(rep) => sconn.on_rep(id, &rep),
            Event::Rtu => {
                sconn.count(|stats| stats.rtu_recv += 1);
                sconn.on_ready(id);
            }
            Event::Established => {
                sconn.count(|stats| stats.established += 1);
                sconn.on_ready(id);
            }
            Event::Rej { reason, private } => sconn.on_rej(control, reason, private),
            Event::Dreq(private) => sconn.on_dreq(id, private),
            Event::ReqError => {
                sconn.count(|stats| stats.req_error += 1);
                sconn.fail();
            }
            Event::RepError => {
                sconn.count(|stats| stats.rep_error += 1);
                sconn.fail();
            }
            Event::DreqError => sconn.count(|stats| stats.dreq_error += 1),
            Event::Drep => sconn.count(|stats| stats.drep_recv += 1),
            Event::TimewaitExit => sconn.count(|stats| stats.timewait += 1),
            Event::Mra => sconn.count(|stats| stats.mra_recv += 1),
            Event::LapError => sconn.count(|stats| stats.lap_error += 1),
            Event::Lap => sconn.count(|stats| stats.lap_recv += 1),
            Event::Apr => sconn.count(|stats| stats.apr_recv += 1),
            Event::Other(_) => sconn.count(|stats| stats.unexp_event += 1),
        }
    }
}

/// What was noticed where one must not sleep.
impl WorkItem<{ work::NOTICED }> for Sconn {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        let mut guard = this.control.lock();
        let control = &mut *guard;
        if this.comm_est.xchg(false, Full) && this.state() == State::Connecting {
            if let Some(id) = &control.id {
                // An RTU that came meanwhile makes this superfluous, and then it is refused.
                let _ = id.notify_established();
            }
        }
        let usable = matches!(this.state(), State::Connecting | State::Connected);
        if this.lost.xchg(false, Full) && usable {
            if let Some(id) = &control.id {
                this.disconnect(id, Disconnect::QpError);
            }
            this.fail();
        }
    }
}

/// The pause before another attempt is over.
impl WorkItem<{ work::RETRY }> for Sconn {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        let fresh = this.new_id();
        let stale = {
            let mut guard = this.control.lock();
            let control = &mut *guard;
            if control.closed || this.state() != State::Delay {
                return;
            }
            let stale = (control.id.take(), control.resolution.take());
            match fresh {
                Ok(id) => {
                    control.id = Some(id);
                    this.begin(control);
                }
                Err(_) => this.fail(),
            }
            stale
        };
        drop(stale);
    }
}

/// The last user has gone.
impl WorkItem<{ work::TEARDOWN }> for Sconn {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        this.take_down();
    }
}
