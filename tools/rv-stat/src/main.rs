// SPDX-License-Identifier: GPL-2.0

//! `rv-stat`: shows what the rv module does.
//!
//! The module has tables in debugfs. [`source`] reads them, [`record`] takes their lines apart, and a
//! [`snapshot`] is all of them at one moment. [`view`] shows a snapshot to people, [`json`] to
//! programs; [`rates`] is what two snapshots differ in.

#![forbid(unsafe_code)]

mod cli;
mod failure;
mod json;
mod rates;
mod record;
mod snapshot;
mod source;
mod units;
mod view;

use std::io::{
    self,
    IsTerminal,
    Write, //
};
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use clap::Parser;

use crate::cli::Cli;
use crate::failure::{
    Failure,
    Result, //
};
use crate::rates::Interval;
use crate::snapshot::Snapshot;

/// Moves a terminal's cursor home and clears what is below.
const CLEAR: &str = "\x1b[H\x1b[J";

fn main() -> ExitCode {
    match run(&Cli::parse()) {
        // Whoever read our output has seen enough.
        Ok(()) | Err(Failure::Closed) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("rv-stat: {failure}");
            ExitCode::from(failure.code())
        }
    }
}

fn run(cli: &Cli) -> Result<()> {
    let mut before = Snapshot::read(&cli.tables)?;
    let Some(seconds) = cli.watch else {
        return show(cli, &before, None);
    };
    let mut left = cli.count;
    while left != Some(0) {
        thread::sleep(Duration::from_secs_f64(seconds));
        let now = Snapshot::read(&cli.tables)?;
        show(cli, &now, Some(&Interval::new(&before, &now)))?;
        before = now;
        left = left.map(|left| left - 1);
    }
    Ok(())
}

/// Shows a snapshot, with the rates since the one before if there was one.
fn show(cli: &Cli, snapshot: &Snapshot, interval: Option<&Interval<'_>>) -> Result<()> {
    let text = if cli.json {
        json::line(snapshot, &cli.sections(), interval)
    } else {
        view::text(snapshot, &cli.sections(), interval)
    };
    let mut out = io::stdout().lock();
    if interval.is_some() && !cli.json && out.is_terminal() {
        write!(out, "{CLEAR}")?;
    }
    writeln!(out, "{text}")?;
    out.flush()?;
    Ok(())
}
