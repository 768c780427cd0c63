// SPDX-License-Identifier: GPL-2.0

//! `rv-perf client`: sends a file or test data.

use std::time::{
    Duration,
    Instant, //
};

use rv_client::{
    Endpoint,
    JobKey, //
};

use crate::cli;
use crate::control::Control;
use crate::failure::{
    Failure,
    Result, //
};
use crate::interrupt::Interrupt;
use crate::latency::Latency;
use crate::message::{
    Done,
    Hello,
    Message,
    Ready,
    Side,
    Welcome,
    PROTOCOL, //
};
use crate::plan::Plan;
use crate::progress::Progress;
use crate::report::{
    Report,
    Transfer, //
};
use crate::sender::{
    unexpected,
    Memory,
    Sender,
    Target, //
};
use crate::session::{
    attach,
    find_port,
    Attached,
    Job,
    Session, //
};
use crate::source::Source;

/// Runs the client.
pub(crate) fn run(args: &cli::Client, interrupt: Interrupt) -> Result<()> {
    let source = open_source(args)?;
    let plan = plan(args, &source)?;
    let timeout = Duration::from_secs(args.common.timeout);
    let mut control = Control::connect(&args.host, args.common.port, timeout, interrupt)?;
    let result = transfer(args, source, plan, &mut control);
    let report = control.say_goodbye(result)?;
    report.print(args.common.json.as_deref())?;
    report.verdict()
}

/// Opens what is to be sent.
fn open_source(args: &cli::Client) -> Result<Source> {
    match (&args.what.file, args.verify) {
        (Some(path), _) => Source::open(path),
        (None, true) => Ok(Source::Checked(Box::default())),
        (None, false) => Ok(Source::Any),
    }
}

/// Cuts it into writes.
fn plan(args: &cli::Client, source: &Source) -> Result<Plan> {
    let (message, iterations) = match (source, args.what.size) {
        (Source::File { length, .. }, _) => (*length, 1),
        (_, Some(0)) => return Err(Failure::Usage("--size must not be 0".into())),
        (_, size) => (size.unwrap_or(0), args.iters),
    };
    let plan = Plan {
        message,
        iterations,
        block: args.block_size,
    };
    plan.check()?;
    Ok(plan)
}

/// Does everything from attaching to the result.
fn transfer(
    args: &cli::Client,
    mut source: Source,
    plan: Plan,
    control: &mut Control,
) -> Result<Report> {
    let mut ready = prepare(args, &source, plan, control)?;
    let times = send(args, &mut source, &mut ready, control)?;
    let file = source.file_name();
    let sha256_sent = match args.verify {
        true => source.checksum(control.interrupt())?,
        false => None,
    };
    let done = await_done(control)?;
    Ok(Report {
        transfer: Transfer {
            file,
            plan: ready.plan,
            window: args.window,
            seconds: times.arrived.as_secs_f64(),
            completion_seconds: times.completed.as_secs_f64(),
            latency: Some(times.latency),
            stored: done.stored,
            sha256_sent,
            sha256_received: done.sha256,
        },
        side: "client",
        client: times.side,
        server: done.side,
    })
}

/// A connection that is up, and what goes over it.
struct Prepared {
    session: Session,
    plan: Plan,
    blocks: u32,
    target: Target,
}

/// Attaches and connects.
fn prepare(
    args: &cli::Client,
    source: &Source,
    plan: Plan,
    control: &mut Control,
) -> Result<Prepared> {
    let job = Job {
        key: args.job_key.map_or_else(new_key, Ok)?,
        num_conn: args.num_conn,
        index_bits: args.index_bits,
    };
    let endpoint = find_port(&args.common, control)?;
    let blocks = match source.counts() {
        true => args.window,
        false => args.buffers.unwrap_or(args.window),
    };
    let wanted = plan.limit_block(u64::MAX);
    let memory = wanted.stride().saturating_mul(blocks.into());
    let attached = attach(endpoint.clone(), &job, args.window.into(), memory)?;
    let plan = wanted.limit_block(attached.attachment.max_registration());

    let hello = hello(args, &job, endpoint, plan, blocks, source);
    let (session, welcome) = introduce(attached, &job, hello, control)?;
    let plan = plan.limit_block(welcome.block);
    if plan.block < wanted.block && !args.common.quiet {
        let size = crate::units::size(plan.block);
        eprintln!("rv-perf: writes of {size}: more cannot be registered in one piece");
    }
    let target = Target {
        ready: connect(&session, control)?,
        rv_index: welcome.rv_index,
    };
    Ok(Prepared {
        session,
        plan,
        blocks,
        target,
    })
}

/// How long it took, and what was counted.
struct Times {
    completed: Duration,
    arrived: Duration,
    latency: Latency,
    side: Side,
}

/// Sends everything, until the server has stored it.
fn send(
    args: &cli::Client,
    source: &mut Source,
    prepared: &mut Prepared,
    control: &mut Control,
) -> Result<Times> {
    let Prepared {
        session,
        plan,
        blocks,
        target,
    } = prepared;
    let sender = Sender {
        session,
        control,
        plan: *plan,
        source,
        memory: Memory::new(plan, *blocks)?,
        target,
        busy_poll: args.busy_poll,
    };
    let mut progress = Progress::new("sending", plan.bytes(), args.common.quiet);
    let started = Instant::now();
    let sent = sender.run(args.window, &mut progress)?;
    let completed = started.elapsed();
    let side = session.side(plan.writes(), plan.bytes())?;
    control.send(&Message::Finished(Box::new(side.clone())))?;
    if !sent.has_arrived {
        await_arrived(control)?;
    }
    let arrived = started.elapsed();
    progress.finish();
    Ok(Times {
        completed,
        arrived,
        latency: sent.latency,
        side,
    })
}

/// Makes a key for a job of its own.
fn new_key() -> Result<JobKey> {
    let mut key = [0; 16];
    rustix::rand::getrandom(&mut key, rustix::rand::GetRandomFlags::empty())
        .map_err(|error| Failure::Local(format!("no random numbers: {error}")))?;
    Ok(JobKey(key))
}

/// Says who we are and what we want.
fn hello(
    args: &cli::Client,
    job: &Job,
    endpoint: Endpoint,
    plan: Plan,
    buffers: u32,
    source: &Source,
) -> Hello {
    Hello {
        protocol: PROTOCOL,
        uid: rustix::process::getuid().as_raw(),
        endpoint,
        job_key: job.key,
        num_conn: job.num_conn,
        index_bits: job.index_bits,
        plan,
        window: args.window,
        buffers,
        file: source.file_name(),
        verify: args.verify,
    }
}

/// Exchanges addresses, after which both sides have made their end of the connection.
fn introduce(
    attached: Attached,
    job: &Job,
    hello: Hello,
    control: &mut Control,
) -> Result<(Session, Welcome)> {
    control.send(&Message::Hello(Box::new(hello)))?;
    let welcome = match control.receive()? {
        Message::Welcome(welcome) => welcome,
        other => return Err(unexpected(&other)),
    };
    let session = attached.create_conn(job, &welcome.endpoint)?;
    control.send(&Message::Created)?;
    Ok((session, welcome))
}

/// Connects, when the server does too.
fn connect(session: &Session, control: &mut Control) -> Result<Ready> {
    let ready = match control.receive()? {
        Message::Ready(ready) => ready,
        other => return Err(unexpected(&other)),
    };
    session.connect(control)?;
    Ok(ready)
}

/// Waits until the server has stored everything.
fn await_arrived(control: &mut Control) -> Result<()> {
    loop {
        match control.receive()? {
            Message::Credit(_) => {}
            Message::Arrived => return Ok(()),
            other => return Err(unexpected(&other)),
        }
    }
}

/// Waits for the server's result.
fn await_done(control: &mut Control) -> Result<Done> {
    loop {
        match control.receive()? {
            Message::Busy => {}
            Message::Done(done) => return Ok(*done),
            other => return Err(unexpected(&other)),
        }
    }
}
