// SPDX-License-Identifier: GPL-2.0

//! `rv-bench`: what the registration calls of `/dev/rv` cost, beside those of libibverbs.

mod clock;
mod registration;
mod verbs;

use std::error::Error;
use std::net::{
    IpAddr,
    Ipv4Addr, //
};
use std::process::ExitCode;

use clap::Parser;
use comfy_table::presets::UTF8_BORDERS_ONLY;
use comfy_table::{
    CellAlignment,
    Table, //
};
use rv_client::{
    AttachConfig,
    Attachment,
    Device,
    JobKey,
    PortChoice,
    Sysfs, //
};
use serde_json::json;

use crate::clock::Clock;
use crate::registration::{
    Costs,
    Times, //
};
use crate::verbs::Pd;

/// Measures REG_MEM and DEREG_MEM of /dev/rv beside ibv_reg_mr and ibv_dereg_mr
///
/// For each size, and in turns: an ioctl that rv does not know (the floor); REG_MEM of fresh,
/// touched memory (a miss); REG_MEM of the same range while it is in use and after its last
/// DEREG_MEM (hits); DEREG_MEM; and ibv_reg_mr and ibv_dereg_mr of fresh, touched memory on the same
/// device. Prints medians in microseconds.
#[derive(Debug, Parser)]
#[command(version)]
struct Cli {
    /// RDMA device [default: the only one]
    #[arg(long, short)]
    device: Option<String>,

    /// Times to measure each call; hits and DEREG_MEM in batches
    #[arg(long, short, default_value_t = 51, value_parser = clap::value_parser!(u32).range(5..))]
    rounds: u32,

    /// Sizes of the ranges in KiB
    #[arg(long, short, value_delimiter = ',', default_values_t = [4, 64, 1024, 2048])]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    sizes: Vec<u32>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    match run(&Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("rv-bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: &Cli) -> Result<(), Box<dyn Error>> {
    let attachment = attach(cli)?;
    let device = attachment.endpoint().device.clone();
    let pd = Pd::open(&device)?;
    let clock = Clock::calibrate();
    // CAST: KiB of at most 1 GiB.
    let sizes: Vec<usize> = cli.sizes.iter().map(|kib| *kib as usize * 1024).collect();
    let mut times: Vec<Times> = sizes.iter().map(|_| Times::default()).collect();
    for _ in 0..cli.rounds {
        for (times, size) in times.iter_mut().zip(&sizes) {
            times.round(clock, &attachment, &pd, *size)?;
        }
    }
    let costs: Vec<Costs> = times.iter().zip(&sizes).map(|(t, s)| t.costs(*s)).collect();
    if cli.json {
        println!(
            "{}",
            json!({ "tool": "rv-bench", "device": device, "rounds": cli.rounds, "costs": costs })
        );
    } else {
        println!("{}", table(&costs));
    }
    Ok(())
}

/// Attaches to the device, alone in a job.
fn attach(cli: &Cli) -> Result<Attachment, Box<dyn Error>> {
    let sysfs = Sysfs::default();
    let device = match (&cli.device, sysfs.devices().as_slice()) {
        (Some(device), _) => device.clone(),
        (None, [device]) => device.clone(),
        (None, devices) => {
            return Err(format!("name a device with --device: {}", devices.join(", ")).into())
        }
    };
    let choice = PortChoice {
        device: Some(device),
        port: 1,
        gid_index: None,
    };
    let endpoint = sysfs.select(&choice, IpAddr::from(Ipv4Addr::UNSPECIFIED))?;
    let config = AttachConfig {
        endpoint,
        job_key: JobKey(*b"rv-bench\0\0\0\0\0\0\0\0"),
        num_conn: 1,
        index_bits: 9,
        ring_entries: 0,
        cache_mib: 0,
        q_depth: 0,
        reconnect_timeout: 0,
        heartbeat_interval: 0,
    };
    Ok(Device::open()?.attach(&config)?)
}

/// Shows the costs to people.
fn table(costs: &[Costs]) -> Table {
    let mut table = Table::new();
    table.load_preset(UTF8_BORDERS_ONLY);
    table.set_header([
        "KiB",
        "floor",
        "miss",
        "hit",
        "hit idle",
        "DEREG",
        "DEREG last",
        "ibv_reg_mr",
        "ibv_dereg_mr",
    ]);
    for cost in costs {
        let times = [
            cost.floor,
            cost.miss,
            cost.hit,
            cost.hit_idle,
            cost.dereg,
            cost.dereg_last,
            cost.ibv_reg,
            cost.ibv_dereg,
        ];
        let cells = times.iter().map(|time| format!("{time:.2}"));
        table.add_row(std::iter::once((cost.size / 1024).to_string()).chain(cells));
    }
    for column in table.column_iter_mut() {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn command_line() {
        Cli::command().debug_assert();
        let cli = Cli::try_parse_from(["rv-bench", "--sizes", "4,64"]).unwrap();
        assert_eq!(cli.sizes, [4, 64]);
        assert!(Cli::try_parse_from(["rv-bench", "--rounds", "1"]).is_err());
    }
}
