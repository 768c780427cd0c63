// SPDX-License-Identifier: GPL-2.0

//! `rv-bench`: what the calls of `/dev/rv` cost: those for registration beside libibverbs, and
//! others with more and more processes and connections.

mod clock;
mod crowd;
mod load;
mod registration;
mod scale;
mod verbs;

use std::error::Error;
use std::net::{
    IpAddr,
    Ipv4Addr, //
};
use std::process::ExitCode;
use std::time::Duration;

use clap::{
    Args,
    Parser,
    Subcommand, //
};
use comfy_table::presets::UTF8_BORDERS_ONLY;
use comfy_table::{
    CellAlignment,
    Table, //
};
use rv_client::{
    AttachConfig,
    Attachment,
    Device,
    Endpoint,
    JobKey,
    PortChoice,
    Sysfs, //
};
use serde_json::json;

use crate::clock::Clock;
use crate::crowd::Crowd;
use crate::load::{
    Filled,
    Throughput, //
};
use crate::registration::{
    Costs,
    Times, //
};
use crate::scale::Cost;
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
    /// What to do instead.
    #[command(subcommand)]
    command: Option<Command>,

    /// RDMA device [default: the only one]
    #[arg(long, short, global = true)]
    device: Option<String>,

    /// Print JSON
    #[arg(long, global = true)]
    json: bool,

    /// Times to measure each call; hits and DEREG_MEM in batches
    #[arg(long, short, default_value_t = 51, value_parser = clap::value_parser!(u32).range(5..))]
    rounds: u32,

    /// Sizes of the ranges in KiB
    #[arg(long, short, value_delimiter = ',', default_values_t = [4, 64, 1024, 2048])]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    sizes: Vec<u32>,

    /// Pages of regions kept ready for fast registration [default: the module's]
    #[arg(long, default_value_t = 0, global = true)]
    fr_pages: u32,
}

/// What else there is to do.
#[derive(Debug, Subcommand)]
enum Command {
    /// Measures calls in jobs of 1, 8 and 64 processes, and with 1, 16 and 64 connections
    Scale {
        /// Times to measure each call
        #[arg(long, short, default_value_t = 21, value_parser = clap::value_parser!(u32).range(5..))]
        rounds: u32,
    },

    /// Measures the cache with threads that use it at the same time, and with much in it
    Load {
        /// Numbers of threads
        #[arg(long, value_delimiter = ',', default_values_t = [1, 8])]
        #[arg(value_parser = clap::value_parser!(u32).range(1..=256))]
        threads: Vec<u32>,

        /// Numbers of registrations in the cache
        #[arg(long, value_delimiter = ',', default_values_t = [1, 100, 10_000])]
        #[arg(value_parser = clap::value_parser!(u32).range(1..=32768))]
        cached: Vec<u32>,
    },

    /// Lets processes join a job, each with connections that nobody uses, until it is killed: company
    /// for measurements with other tools
    Crowd {
        /// Processes
        #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(0..=512))]
        members: u32,

        /// What they join.
        #[command(flatten)]
        job: Job,
    },

    /// Is one process of a crowd, until standard input ends
    #[command(hide = true)]
    Member {
        /// What it joins.
        #[command(flatten)]
        job: Job,
    },
}

/// A job, and what a process has in it.
#[derive(Args, Clone, Copy, Debug)]
struct Job {
    /// Job to join, 32 hexadecimal digits
    #[arg(long, value_name = "UUID")]
    job_key: JobKey,

    /// Connections of each process, to nodes that do not exist
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=1024))]
    conns: u32,
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
    let device = device(cli)?;
    match &cli.command {
        None => registration(cli, &device),
        Some(Command::Scale { rounds }) => scale(cli, &device, *rounds),
        Some(Command::Load { threads, cached }) => load(cli, &device, threads, cached),
        Some(Command::Crowd { members, job }) => {
            let _crowd = Crowd::gather(&device, job.job_key, *members, job.conns)?;
            println!("ready");
            loop {
                std::thread::park();
            }
        }
        Some(Command::Member { job }) => crowd::member(&device, job.job_key, job.conns),
    }
}

/// Measures what depends on the number of processes and connections.
fn scale(cli: &Cli, device: &str, rounds: u32) -> Result<(), Box<dyn Error>> {
    let costs = scale::measure(device, KEY, rounds)?;
    if cli.json {
        println!(
            "{}",
            json!({ "tool": "rv-bench", "device": device, "rounds": rounds, "scale": costs })
        );
    } else {
        println!("{}", scale_table(&costs));
    }
    Ok(())
}

/// How long threads use the cache.
const LOAD_TIME: Duration = Duration::from_secs(4);

/// Measures the cache under load.
fn load(cli: &Cli, device: &str, threads: &[u32], cached: &[u32]) -> Result<(), Box<dyn Error>> {
    let attachment = attach(&endpoint(device)?, KEY, cli.fr_pages)?;
    let clock = Clock::calibrate();
    let threads = threads
        .iter()
        .map(|threads| load::throughput(&attachment, *threads, LOAD_TIME))
        .collect::<Result<Vec<_>, _>>()?;
    let cached = cached
        .iter()
        .map(|cached| load::filled(&attachment, clock, *cached, cli.rounds))
        .collect::<Result<Vec<_>, _>>()?;
    if cli.json {
        println!(
            "{}",
            json!({ "tool": "rv-bench", "device": device, "threads": threads, "cached": cached })
        );
    } else {
        println!("{}\n{}", threads_table(&threads), cached_table(&cached));
    }
    Ok(())
}

/// Measures registration.
fn registration(cli: &Cli, device: &str) -> Result<(), Box<dyn Error>> {
    let attachment = attach(&endpoint(device)?, KEY, cli.fr_pages)?;
    let pd = Pd::open(device)?;
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

/// The job of a process that measures alone.
const KEY: JobKey = JobKey(*b"rv-bench\0\0\0\0\0\0\0\0");

/// The device that the options name, or the only one.
fn device(cli: &Cli) -> Result<String, Box<dyn Error>> {
    match (&cli.device, Sysfs::default().devices().as_slice()) {
        (Some(device), _) => Ok(device.clone()),
        (None, [device]) => Ok(device.clone()),
        (None, devices) => {
            Err(format!("name a device with --device: {}", devices.join(", ")).into())
        }
    }
}

/// The device's port.
fn endpoint(device: &str) -> rv_client::Result<Endpoint> {
    let choice = PortChoice {
        device: Some(device.to_owned()),
        port: 1,
        gid_index: None,
    };
    Sysfs::default().select(&choice, IpAddr::from(Ipv4Addr::UNSPECIFIED))
}

/// Attaches to a port. rv-perf attaches in the same way, so that both fit into one job.
fn attach(endpoint: &Endpoint, job_key: JobKey, fr_pages: u32) -> rv_client::Result<Attachment> {
    let config = AttachConfig {
        endpoint: endpoint.clone(),
        job_key,
        num_conn: 1,
        index_bits: 9,
        ring_entries: 0,
        cache_mib: 0,
        q_depth: 0,
        reconnect_timeout: 0,
        heartbeat_interval: 0,
        fr_pages,
    };
    Device::open()?.attach(&config)
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

/// Shows what threads get done to people.
fn threads_table(throughputs: &[Throughput]) -> Table {
    let mut table = begin(&["threads", "hits/s"]);
    for throughput in throughputs {
        table.add_row([
            throughput.threads.to_string(),
            format!("{:.0}", throughput.hits_per_second),
        ]);
    }
    end(table)
}

/// Shows the costs by what is in the cache to people.
fn cached_table(filled: &[Filled]) -> Table {
    let mut table = begin(&["cached", "hit", "DEREG", "miss"]);
    for cost in filled {
        let times = [cost.hit, cost.dereg, cost.miss].map(|time| format!("{time:.2}"));
        table.add_row(std::iter::once(cost.cached.to_string()).chain(times));
    }
    end(table)
}

/// Begins a table.
fn begin(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_preset(UTF8_BORDERS_ONLY);
    table.set_header(header);
    table
}

/// Ends a table: all are numbers.
fn end(mut table: Table) -> Table {
    for column in table.column_iter_mut() {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// Shows the costs by processes and connections to people.
fn scale_table(costs: &[Cost]) -> Table {
    let mut table = Table::new();
    table.load_preset(UTF8_BORDERS_ONLY);
    table.set_header([
        "processes",
        "connections",
        "ATTACH",
        "close",
        "hit",
        "CREATE",
        "CREATE shared",
        "CONNECTED",
    ]);
    for cost in costs {
        let numbers = [cost.processes, cost.connections].map(|number| number.to_string());
        let times = [
            cost.attach,
            cost.close,
            cost.hit,
            cost.create,
            cost.share,
            cost.connected,
        ];
        let cells = times.iter().map(|time| format!("{time:.2}"));
        table.add_row(numbers.into_iter().chain(cells));
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
        assert!(
            Cli::try_parse_from(["rv-bench", "scale", "--json"])
                .unwrap()
                .json
        );
        assert!(Cli::try_parse_from(["rv-bench", "load", "--threads", "1,8"]).is_ok());
        assert!(Cli::try_parse_from(["rv-bench", "load", "--threads", "0"]).is_err());
        assert!(Cli::try_parse_from(["rv-bench", "crowd"]).is_err());
        let key = "00ff00ff-0000-0000-0000-00ff0f0f00ff";
        assert!(Cli::try_parse_from(["rv-bench", "crowd", "--job-key", key]).is_ok());
    }
}
