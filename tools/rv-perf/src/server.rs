// SPDX-License-Identifier: GPL-2.0

//! `rv-perf server`: receives what clients send.

use std::net::{
    IpAddr,
    Ipv4Addr,
    Ipv6Addr,
    SocketAddr,
    TcpListener, //
};
use std::time::{
    Duration,
    Instant, //
};

use crate::cli;
use crate::control::{
    accept,
    Control, //
};
use crate::failure::{
    Failure,
    Result, //
};
use crate::interrupt::Interrupt;
use crate::message::{
    Done,
    Hello,
    Message,
    Side,
    Welcome,
    PROTOCOL, //
};
use crate::plan::Plan;
use crate::progress::Progress;
use crate::receiver::{
    Memory,
    Receiver, //
};
use crate::report::{
    Report,
    Transfer, //
};
use crate::sender::unexpected;
use crate::session::{
    attach,
    find_port,
    Job,
    Session, //
};
use crate::sink::Sink;

/// Writes a sender may be ahead where nobody looks at the data: only the ring limits it.
const FREE_CREDITS: u64 = 1024;
/// Time between two signs of life.
const BUSY_PAUSE: Duration = Duration::from_secs(1);

/// Runs the server.
pub(crate) fn run(args: &cli::Server, interrupt: Interrupt) -> Result<()> {
    // Tell now what a client would run into.
    drop(rv_client::Device::open()?);
    let listener = listen(args)?;
    say(
        args,
        &format!("waiting for clients on port {}", args.common.port),
    );
    loop {
        let (stream, address) = accept(&listener, &interrupt)?;
        say(args, &format!("client {}", address.ip().to_canonical()));
        let timeout = Duration::from_secs(args.common.timeout);
        let result = Control::new(stream, timeout, interrupt.clone())
            .and_then(|control| serve(args, control));
        match result {
            Ok(()) if args.once => return Ok(()),
            Ok(()) => {}
            Err(failure) if args.once => return Err(failure),
            Err(Failure::Interrupted) => return Err(Failure::Interrupted),
            Err(failure) => eprintln!("rv-perf: {failure}"),
        }
    }
}

/// Opens the TCP port.
fn listen(args: &cli::Server) -> Result<TcpListener> {
    let port = args.common.port;
    let any6 = IpAddr::from(Ipv6Addr::UNSPECIFIED);
    let mut result = TcpListener::bind(SocketAddr::new(args.bind.unwrap_or(any6), port));
    if result.is_err() && args.bind.is_none() {
        // A host without IPv6.
        result = TcpListener::bind(SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), port));
    }
    let listener = result
        .map_err(|error| Failure::Local(format!("cannot listen on TCP port {port}: {error}")))?;
    listener
        .set_nonblocking(true)
        .map_err(|error| Failure::Local(format!("TCP port {port}: {error}")))?;
    Ok(listener)
}

/// Prints what happens.
fn say(args: &cli::Server, text: &str) {
    if !args.common.quiet {
        eprintln!("rv-perf: {text}");
    }
}

/// Serves one client.
fn serve(args: &cli::Server, mut control: Control) -> Result<()> {
    let result = transfer(args, &mut control);
    let report = control.say_goodbye(result)?;
    report.print(args.common.json.as_deref())?;
    report.verdict()
}

/// Does everything from the greeting to the result.
fn transfer(args: &cli::Server, control: &mut Control) -> Result<Report> {
    let hello = match control.receive()? {
        Message::Hello(hello) => *hello,
        other => return Err(unexpected(&other)),
    };
    check(&hello)?;
    let mut sink = Sink::new(args.output.as_deref(), hello.file.as_deref(), hello.verify)?;
    let room = Room::new(&hello, &sink);
    let (mut session, plan) = introduce(args, &hello, &room, control)?;
    session.conn.connect()?;
    let memory = Memory::register(&session, &plan, room.slots)?;
    control.send(&Message::Ready(memory.ready(room.credits)))?;
    session.await_up(control)?;

    let mut progress = Progress::new("receiving", plan.bytes(), args.common.quiet);
    let started = Instant::now();
    let receiver = Receiver::new(
        &mut session,
        control,
        plan,
        &memory,
        &mut sink,
        room.credits,
    );
    let bytes = receiver.run(&mut progress)?;
    control.send(&Message::Arrived)?;
    let seconds = started.elapsed().as_secs_f64();
    progress.finish();
    let (client, done) = conclude(&session, &hello, sink, (plan.writes(), bytes), control)?;
    Ok(Report {
        transfer: Transfer {
            file: hello.file,
            plan,
            window: hello.window,
            seconds,
            completion_seconds: seconds,
            latency: None,
            stored: done.stored,
            sha256_sent: None,
            sha256_received: done.sha256,
        },
        side: "server",
        client,
        server: done.side,
    })
}

/// Gives the file its name and tells the client the result; returns the client's numbers and ours.
fn conclude(
    session: &Session,
    hello: &Hello,
    mut sink: Sink,
    (writes, bytes): (u64, u64),
    control: &mut Control,
) -> Result<(Side, Done)> {
    let sha256 = sink.checksum(hello.verify, signs_of_life(control))?;
    let client = await_finished(control)?;
    let done = Done {
        side: session.side(writes, bytes)?,
        sha256,
        stored: sink.finish()?,
    };
    control.send(&Message::Done(Box::new(done.clone())))?;
    Ok((client, done))
}

/// Checks what a client asks for.
fn check(hello: &Hello) -> Result<()> {
    if hello.protocol != PROTOCOL {
        return Err(Failure::Peer(format!(
            "the client speaks protocol {}, this rv-perf {PROTOCOL}: use the same version",
            hello.protocol
        )));
    }
    let uid = rustix::process::getuid().as_raw();
    if hello.uid != uid {
        return Err(Failure::Usage(format!(
            "the server runs as user id {uid}, the client as {}: rv joins processes of one \
             user id only",
            hello.uid
        )));
    }
    let in_range = |n: u32, most| (1..=most).contains(&n);
    if !in_range(hello.window, cli::MOST_WINDOW) || !in_range(hello.buffers, cli::MOST_WINDOW) {
        return Err(Failure::Peer(format!(
            "the client asks for a window of {} and {} buffers",
            hello.window, hello.buffers
        )));
    }
    hello.plan.check()
}

/// How much memory a transfer gets, and how far the sender may run ahead.
struct Room {
    slots: u32,
    credits: u64,
}

impl Room {
    /// Decides by what becomes of the data.
    fn new(hello: &Hello, sink: &Sink) -> Self {
        if !sink.counts() {
            return Self {
                slots: hello.buffers,
                credits: FREE_CREDITS,
            };
        }
        // While one half is under way, the other can be stored. A power of two, so that the slot
        // is a part of the number that fits into an immediate.
        let slots = hello.window.saturating_mul(2).next_power_of_two();
        Self {
            slots,
            credits: slots.into(),
        }
    }
}

/// Exchanges addresses, after which both sides have made their end of the connection.
fn introduce(
    args: &cli::Server,
    hello: &Hello,
    room: &Room,
    control: &mut Control,
) -> Result<(Session, Plan)> {
    let endpoint = find_port(&args.common, control)?;
    let job = Job {
        key: hello.job_key,
        num_conn: hello.num_conn,
        index_bits: hello.index_bits,
    };
    let memory = |plan: &Plan| plan.stride().saturating_mul(room.slots.into());
    let plan = hello.plan.limit_block(u64::MAX);
    if memory(&plan) > args.max_memory {
        return Err(Failure::Usage(format!(
            "the transfer needs {} of memory on the server, --max-memory there is {}",
            crate::units::size(memory(&plan)),
            crate::units::size(args.max_memory)
        )));
    }
    let attached = attach(endpoint.clone(), &job, room.credits, memory(&plan))?;
    let plan = plan.limit_block(attached.attachment.max_registration());
    let rv_index = attached.attachment.rv_index();
    let session = attached.create_conn(&job, &hello.endpoint)?;
    control.send(&Message::Welcome(Welcome {
        endpoint,
        rv_index,
        block: plan.block,
    }))?;
    match control.receive()? {
        Message::Created => Ok((session, plan)),
        other => Err(unexpected(&other)),
    }
}

/// Makes a function that tells the client now and then that we are at work.
fn signs_of_life(control: &mut Control) -> impl FnMut() -> Result<()> + '_ {
    let mut last = Instant::now();
    move || {
        control.interrupt().check()?;
        if last.elapsed() < BUSY_PAUSE {
            return Ok(());
        }
        last = Instant::now();
        control.send(&Message::Busy)
    }
}

/// Waits for the client's numbers.
fn await_finished(control: &mut Control) -> Result<Side> {
    match control.receive()? {
        Message::Finished(side) => Ok(*side),
        other => Err(unexpected(&other)),
    }
}
