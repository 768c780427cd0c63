// SPDX-License-Identifier: GPL-2.0

//! `rv-plot`: draws curves over message size from JSON, as SVG.

mod chart;

use std::error::Error;
use std::fs::File;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

use crate::chart::Chart;

/// Draws curves over message size as SVG
///
/// The input is JSON: `title`, `y_label`, and `series`, a list of `name`, `reference` (true for the
/// curve that ours is compared with, which is drawn thinner), `group` (a number; curves of one group
/// have the same colour) and `points`, pairs of bytes and value.
/// Both axes are logarithmic unless `linear` is true, which makes the vertical one linear.
#[derive(Debug, Parser)]
#[command(version)]
struct Cli {
    /// The JSON file
    input: PathBuf,
    /// The SVG file to write
    output: PathBuf,
}

fn main() -> ExitCode {
    match run(&Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("rv-plot: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: &Cli) -> Result<(), Box<dyn Error>> {
    let name = cli.input.display();
    let file = File::open(&cli.input).map_err(|error| format!("{name}: {error}"))?;
    let chart: Chart = serde_json::from_reader(std::io::BufReader::new(file))
        .map_err(|error| format!("{name}: {error}"))?;
    chart.draw(&cli.output)
}
