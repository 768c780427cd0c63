// SPDX-License-Identifier: GPL-2.0

//! `rv-perf`: moves files and measures bandwidth through `/dev/rv`.
//!
//! Two processes, one on each host, talk over TCP ([`control`], [`frame`], [`message`]) and move
//! data through the module. [`client`] and [`server`] run a transfer from end to end; the loops
//! that move data are in [`sender`] and [`receiver`], and [`session`] is what both do with the
//! module. [`plan`] cuts the data into writes, [`sequence`] tells them apart on arrival.

#![forbid(unsafe_code)]

mod cli;
mod client;
mod control;
mod digest;
mod failure;
mod frame;
mod interrupt;
mod latency;
mod message;
mod plan;
mod progress;
mod receiver;
mod report;
mod sender;
mod sequence;
mod server;
mod session;
mod sink;
mod source;
mod units;
mod wait;

use std::process::ExitCode;

use clap::Parser;

use crate::cli::{
    Cli,
    Command, //
};
use crate::failure::{
    Failure,
    Result, //
};
use crate::interrupt::Interrupt;

fn main() -> ExitCode {
    match run(&Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("rv-perf: {failure}");
            ExitCode::from(&failure)
        }
    }
}

fn run(cli: &Cli) -> Result<()> {
    let interrupt = Interrupt::install()
        .map_err(|error| Failure::Local(format!("cannot handle signals: {error}")))?;
    match &cli.command {
        Command::Server(args) => server::run(args, interrupt),
        Command::Client(args) => client::run(args, interrupt),
    }
}
