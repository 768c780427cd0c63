// SPDX-License-Identifier: GPL-2.0

//! Company for a measurement: other processes of the same job, and connections that nobody uses.

use std::error::Error;
use std::io::{
    self,
    BufRead,
    BufReader,
    Read,
    Write, //
};
use std::net::{
    IpAddr,
    Ipv4Addr, //
};
use std::process::{
    Child,
    Command,
    Stdio, //
};

use rv_client::{
    Attachment,
    Conn,
    Endpoint,
    Gid,
    JobKey, //
};

use crate::{
    attach,
    endpoint, //
};

/// What a member says when it has joined.
const READY: &str = "ready";

/// Processes of a job; they leave when this is dropped.
pub(crate) struct Crowd(Vec<Child>);

impl Crowd {
    /// Lets `members` processes join the job, each with `conns` connections.
    pub(crate) fn gather(
        device: &str,
        job_key: JobKey,
        members: u32,
        conns: u32,
    ) -> Result<Self, Box<dyn Error>> {
        let mut crowd = Self(Vec::new());
        for _ in 0..members {
            let child = Command::new(std::env::current_exe()?)
                .args(["--device", device, "member"])
                .args(["--job-key", &job_key.to_string()])
                .args(["--conns", &conns.to_string()])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()?;
            crowd.0.push(child);
        }
        for child in &mut crowd.0 {
            let mut line = String::new();
            if let Some(stdout) = &mut child.stdout {
                BufReader::new(stdout).read_line(&mut line)?;
            }
            if line.trim_end() != READY {
                return Err("a process of the crowd could not join the job".into());
            }
        }
        Ok(crowd)
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        for child in &mut self.0 {
            drop(child.stdin.take());
        }
        for child in &mut self.0 {
            let _ = child.wait();
        }
    }
}

/// Is one of a crowd: joins, says so, and stays until standard input ends.
pub(crate) fn member(device: &str, job_key: JobKey, conns: u32) -> Result<(), Box<dyn Error>> {
    let attachment = attach(&endpoint(device)?, job_key, 0)?;
    let _conns = connections(&attachment, 0..conns)?;
    println!("{READY}");
    io::stdout().flush()?;
    io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

/// Makes connections to nodes that do not exist; nothing is sent to them.
pub(crate) fn connections(
    attachment: &Attachment,
    numbers: std::ops::Range<u32>,
) -> rv_client::Result<Vec<Conn>> {
    numbers
        .map(|number| attachment.create_conn(&nobody(attachment.endpoint(), number)))
        .collect()
}

/// A node that does not exist: an address for documentation (RFC 5737, RFC 2544).
pub(crate) fn nobody(local: &Endpoint, number: u32) -> Endpoint {
    let base = u32::from(Ipv4Addr::new(198, 18, 0, 1));
    let address = Ipv4Addr::from(base.wrapping_add(number));
    Endpoint {
        gid: Gid::from(IpAddr::from(address)),
        lid: 0x1000_u16.wrapping_add(number as u16),
        ..local.clone()
    }
}
