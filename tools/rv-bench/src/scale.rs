// SPDX-License-Identifier: GPL-2.0

//! How the cost of a call grows with the number of processes in the job and of connections.

use std::error::Error;

use rv_client::{
    Access,
    Attachment,
    Buffer,
    Endpoint,
    JobKey, //
};
use serde::Serialize;

use crate::clock::{
    Clock,
    Samples, //
};
use crate::crowd::{
    connections,
    nobody,
    Crowd, //
};
use crate::{
    attach,
    endpoint, //
};

/// Numbers of processes that are tried.
const PROCESSES: [u32; 3] = [1, 8, 64];
/// Numbers of connections that are tried.
const CONNECTIONS: [u32; 3] = [1, 16, 64];
/// Bytes of the range that is registered.
const LENGTH: usize = 65536;

/// Medians in microseconds, by what there is.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Cost {
    /// Processes in the job.
    pub(crate) processes: u32,
    /// Connections of the job.
    pub(crate) connections: u32,
    /// ATTACH of one more process.
    pub(crate) attach: f64,
    /// `close()` of it.
    pub(crate) close: f64,
    /// `REG_MEM` of memory that is registered.
    pub(crate) hit: f64,
    /// `CONN_CREATE` of one more connection.
    pub(crate) create: f64,
    /// `CONN_CREATE` of a connection that the job has.
    pub(crate) share: f64,
    /// `CONN_CONNECTED`.
    pub(crate) connected: f64,
}

#[derive(Default)]
struct Times {
    attach: Samples,
    close: Samples,
    hit: Samples,
    create: Samples,
    share: Samples,
    connected: Samples,
}

/// Measures all calls with every number of processes and of connections.
pub(crate) fn measure(
    device: &str,
    job_key: JobKey,
    rounds: u32,
) -> Result<Vec<Cost>, Box<dyn Error>> {
    let clock = Clock::calibrate();
    let endpoint = endpoint(device)?;
    let mut costs = Vec::new();
    for processes in PROCESSES {
        let _crowd = Crowd::gather(device, job_key, processes - 1, 0)?;
        costs.push(cost(clock, &endpoint, job_key, processes, 1, rounds)?);
    }
    for number in CONNECTIONS.into_iter().skip(1) {
        costs.push(cost(clock, &endpoint, job_key, 1, number, rounds)?);
    }
    Ok(costs)
}

/// Measures all calls in a job of so many processes and connections.
fn cost(
    clock: Clock,
    endpoint: &Endpoint,
    job_key: JobKey,
    processes: u32,
    number: u32,
    rounds: u32,
) -> rv_client::Result<Cost> {
    let own = attach(endpoint, job_key, 0)?;
    let conns = connections(&own, 0..number)?;
    let buffer = Buffer::new(LENGTH)?;
    let _keep = own.register(&buffer, 0..LENGTH, Access::Target)?;
    let mut times = Times::default();
    for _ in 0..rounds {
        let (guest, time) = clock.time(|| attach(endpoint, job_key, 0));
        times.attach.add(time);
        let guest = guest?;
        times.visit(clock, &guest, number)?;
        let ((), time) = clock.time(|| drop(guest));
        times.close.add(time);
        let (mr, time) = clock.time(|| own.register(&buffer, 0..LENGTH, Access::Target));
        times.hit.add(time);
        mr?.deregister()?;
        if let Some(conn) = conns.last() {
            let (up, time) = clock.time(|| conn.connected());
            times.connected.add(time);
            up?;
        }
    }
    let median = |samples: &Samples| samples.median() / 1e3;
    Ok(Cost {
        processes,
        connections: number,
        attach: median(&times.attach),
        close: median(&times.close),
        hit: median(&times.hit),
        create: median(&times.create),
        share: median(&times.share),
        connected: median(&times.connected),
    })
}

impl Times {
    /// Makes a connection that the job has, and one that it has not.
    fn visit(&mut self, clock: Clock, guest: &Attachment, number: u32) -> rv_client::Result<()> {
        let known = nobody(guest.endpoint(), number - 1);
        let (conn, time) = clock.time(|| guest.create_conn(&known));
        self.share.add(time);
        conn?;
        let new = nobody(guest.endpoint(), number);
        let (conn, time) = clock.time(|| guest.create_conn(&new));
        self.create.add(time);
        conn?;
        Ok(())
    }
}
