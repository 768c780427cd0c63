// SPDX-License-Identifier: GPL-2.0

//! The command line.

use std::path::PathBuf;

use clap::{
    Args,
    Parser,
    Subcommand, //
};
use rv_client::JobKey;

use crate::units::parse_size;

/// TCP port for the exchange of addresses.
const PORT: u16 = 7471;
/// Most writes under way.
pub(crate) const MOST_WINDOW: u32 = 2048;

const LONG_ABOUT: &str = "\
Moves a file, or data made up for a measurement, from one host to another through /dev/rv, the \
RDMA rendezvous module.

Start `rv-perf server` on one host and `rv-perf client HOST` on the other. They tell each other \
their addresses over TCP; the data itself travels only by RDMA WRITE with immediate, posted to \
and completed by /dev/rv. rv joins processes of the same numeric user id, so both sides must run \
as the same user.";

const AFTER_HELP: &str = "\
How a transfer works:
  Both sides attach to one job, make the shared connection and wait until it is up. The server
  registers blocks of memory and tells the client their addresses and keys. For each block the
  client registers the source (which the cache of the module answers from the second time on) and
  posts one RDMA WRITE; at most --window of them are under way. The immediate of a write carries
  the server's index in the job and the number of the write. The server sees each write in its
  event ring, stores the block, and lends it out again by a short message over TCP (a credit).

Exit code:
  0    all data arrived; with --verify, and is the same
  1    something on this host failed: a file, memory, a call to the module
  2    wrong usage
  3    /dev/rv or the RDMA device cannot be used: not there, no permission, wrong version
  4    the peer cannot be reached, refused, failed or went away
  5    nothing happened for --timeout seconds
  6    --verify: the data that arrived differs
  130  interrupted (Ctrl-C)

Examples:
  rv-perf server --output /tmp --once
  rv-perf client 10.9.0.1 --file linux.tar.xz --verify
  rv-perf client 10.9.0.1 --size 64K --iters 10000 --window 16 --json";

/// Moves files and measures bandwidth through /dev/rv
#[derive(Debug, Parser)]
#[command(version, about, long_about = LONG_ABOUT, after_long_help = AFTER_HELP)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The two sides.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Waits for clients and receives what they send, one after another
    Server(Server),
    /// Sends a file or test data to a server
    Client(Client),
}

/// Options of both sides.
#[derive(Args, Clone, Debug)]
pub(crate) struct Common {
    /// TCP port of the server
    #[arg(long, short, default_value_t = PORT)]
    pub(crate) port: u16,

    /// RDMA device, e.g. rxe0 [default: the one with the address of the TCP connection]
    #[arg(long, short)]
    pub(crate) device: Option<String>,

    /// Port of the RDMA device
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..))]
    pub(crate) ib_port: u8,

    /// Index in the GID table [default: RoCE v2 with the address of the TCP connection]
    #[arg(long, value_parser = clap::value_parser!(u16).range(0..=255))]
    pub(crate) gid_index: Option<u16>,

    /// Give up when nothing happens for so many seconds
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=86400))]
    pub(crate) timeout: u64,

    /// Print the result as one line of JSON on standard output in place of the table, or with
    /// --json=FILE write it to a file beside the table
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-")]
    pub(crate) json: Option<PathBuf>,

    /// Print no progress
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// Options of the server.
#[derive(Args, Clone, Debug)]
pub(crate) struct Server {
    /// What both sides have.
    #[command(flatten)]
    pub(crate) common: Common,

    /// Local address to listen on [default: all]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) bind: Option<std::net::IpAddr>,

    /// Where a file goes: a file, or a directory to keep the client's name; without it the data
    /// is received and thrown away
    #[arg(long, short, value_name = "PATH")]
    pub(crate) output: Option<PathBuf>,

    /// End after one client, with the exit code that says how it went
    #[arg(long)]
    pub(crate) once: bool,

    /// Most memory that a client may ask for
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = parse_size)]
    pub(crate) max_memory: u64,
}

/// Options of the client.
#[derive(Args, Clone, Debug)]
pub(crate) struct Client {
    /// Name or address of the server, reached over the network of the RDMA device
    pub(crate) host: String,

    /// What both sides have.
    #[command(flatten)]
    pub(crate) common: Common,

    /// What to send.
    #[command(flatten)]
    pub(crate) what: What,

    /// How many times to send the --size bytes
    #[arg(long, short = 'n', default_value_t = 1000, conflicts_with = "file")]
    pub(crate) iters: u64,

    /// Most writes under way
    #[arg(long, short, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_WINDOW)))]
    pub(crate) window: u32,

    /// Most bytes of one write; limited by what the devices can register in one piece
    #[arg(long, short, value_name = "SIZE", default_value = "1M", value_parser = parse_size)]
    pub(crate) block_size: u64,

    /// Blocks of memory to use on each side where the data does not count (--size without
    /// --verify); the perftest tools use 1 [default: the window]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_WINDOW)))]
    pub(crate) buffers: Option<u32>,

    /// Queue pairs between the two hosts; 0 leaves it to the module
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(0..=16))]
    pub(crate) num_conn: u8,

    /// Look for completions without a pause: the shortest times, for a whole processor
    #[arg(long)]
    pub(crate) busy_poll: bool,

    /// Compare SHA-256 check sums of what was sent and what arrived
    #[arg(long)]
    pub(crate) verify: bool,

    /// Job to join, 32 hexadecimal digits; processes of one job and user share connections
    /// [default: a new one]
    #[arg(long, alias = "uuid", value_name = "UUID")]
    pub(crate) job_key: Option<JobKey>,

    /// Top bits of the immediate that are the index of a process in its job
    #[arg(long, default_value_t = 9, value_parser = clap::value_parser!(u8).range(0..=12))]
    pub(crate) index_bits: u8,
}

/// A file or test data.
#[derive(Args, Clone, Debug)]
#[group(required = true, multiple = false)]
pub(crate) struct What {
    /// Send this file
    #[arg(long, short)]
    pub(crate) file: Option<PathBuf>,

    /// Send messages of this size with test data
    #[arg(long, short, value_parser = parse_size)]
    pub(crate) size: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn client(args: &[&str]) -> Result<Client, clap::Error> {
        let all = ["rv-perf", "client", "host"].iter().chain(args);
        match Cli::try_parse_from(all)?.command {
            Command::Client(client) => Ok(client),
            Command::Server(_) => panic!("a server"),
        }
    }

    #[test]
    fn is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn help_names_the_exit_codes() {
        let help = Cli::command().render_long_help().to_string();
        for text in ["Exit code:", "130", "Examples:", "RDMA WRITE"] {
            assert!(help.contains(text), "{help}");
        }
    }

    #[test]
    fn one_of_file_and_size() {
        assert!(client(&["--file", "x"]).is_ok());
        assert!(client(&["--size", "64K", "--iters", "5"]).is_ok());
        assert!(client(&[]).is_err());
        assert!(client(&["--file", "x", "--size", "1"]).is_err());
        assert!(client(&["--file", "x", "--iters", "5"]).is_err());
    }

    #[test]
    fn values() {
        let args = [
            "--size",
            "64K",
            "-w",
            "32",
            "--uuid",
            "00ff00ff-0000-0000-0000-00ff0f0f00ff",
        ];
        let client = client(&args).unwrap();
        assert_eq!((client.what.size, client.window), (Some(65536), 32));
        assert!(client.job_key.is_some());
        assert_eq!(client.block_size, 1 << 20);
        assert_eq!(client.common.json, None);
    }

    #[test]
    fn json_to_standard_output_or_a_file() {
        let json = |arg| client(&["--size", "1", arg]).unwrap().common.json.unwrap();
        assert_eq!(json("--json").to_str(), Some("-"));
        assert_eq!(json("--json=result").to_str(), Some("result"));
    }

    #[test]
    fn ranges() {
        for args in [
            ["--window", "0"],
            ["--window", "2049"],
            ["--num-conn", "17"],
            ["--index-bits", "13"],
            ["--timeout", "0"],
            ["--block-size", "1Q"],
            ["--job-key", "abc"],
        ] {
            assert!(
                client(&[&["--size", "1"], &args[..]].concat()).is_err(),
                "{args:?}"
            );
        }
    }
}
