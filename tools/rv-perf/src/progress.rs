// SPDX-License-Identifier: GPL-2.0

//! How far it is: a bar on a terminal, a line now and then in a pipe.

use std::io::{
    stderr,
    IsTerminal, //
};
use std::time::{
    Duration,
    Instant, //
};

use indicatif::{
    ProgressBar,
    ProgressStyle, //
};

use crate::units::{
    mib,
    mib_per_second, //
};

/// Time between two lines in a pipe.
const PAUSE: Duration = Duration::from_secs(2);
/// Between two redraws the clock is only read every so many steps.
const REDRAW: Duration = Duration::from_millis(200);

/// What is told about the way.
pub(crate) struct Progress {
    kind: Kind,
    total: u64,
    done: u64,
    started: Instant,
    last: Instant,
}

enum Kind {
    Bar(ProgressBar),
    Lines,
    Silent,
}

impl Progress {
    /// Starts at 0 of `total` bytes.
    pub(crate) fn new(verb: &'static str, total: u64, quiet: bool) -> Self {
        let kind = match (quiet, stderr().is_terminal()) {
            (true, _) => Kind::Silent,
            (false, true) => Kind::Bar(bar(verb, total)),
            (false, false) => Kind::Lines,
        };
        let now = Instant::now();
        Self {
            kind,
            total,
            done: 0,
            started: now,
            last: now,
        }
    }

    /// So many bytes more.
    pub(crate) fn add(&mut self, bytes: u64) {
        self.done = self.done.saturating_add(bytes);
        let pause = match self.kind {
            Kind::Bar(_) => REDRAW,
            Kind::Lines => PAUSE,
            Kind::Silent => return,
        };
        if self.last.elapsed() < pause {
            return;
        }
        self.last = Instant::now();
        match &self.kind {
            Kind::Bar(bar) => bar.set_position(self.done),
            _ => eprintln!("{}", self.line(self.started.elapsed())),
        }
    }

    /// Takes the bar away; the report follows.
    pub(crate) fn finish(self) {
        if let Kind::Bar(bar) = self.kind {
            bar.finish_and_clear();
        }
    }

    /// Says it in one line.
    fn line(&self, elapsed: Duration) -> String {
        let rate = mib_per_second(self.done, elapsed.as_secs_f64());
        let left = mib(self.total.saturating_sub(self.done));
        let percent = match self.total {
            0 => 100,
            total => u128::from(self.done) * 100 / u128::from(total),
        };
        let mut line = format!(
            "rv-perf: {percent:3} %  {:.1} of {:.1} MiB  {rate:.1} MiB/s",
            mib(self.done),
            mib(self.total)
        );
        if rate > 0.0 {
            line.push_str(&format!("  {:.0} s left", left / rate));
        }
        line
    }
}

/// Makes a bar.
fn bar(verb: &'static str, total: u64) -> ProgressBar {
    let template = "{msg} {wide_bar} {percent:>3} %  {binary_bytes}/{binary_total_bytes}  \
                    {binary_bytes_per_sec}  {eta} left";
    let style =
        ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(total).with_style(style).with_message(verb)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_line() {
        let mut progress = Progress::new("sending", 100 << 20, true);
        progress.add(25 << 20);
        assert_eq!(
            progress.line(Duration::from_secs(5)),
            "rv-perf:  25 %  25.0 of 100.0 MiB  5.0 MiB/s  15 s left"
        );
    }

    #[test]
    fn nothing_to_do_is_done() {
        let progress = Progress::new("sending", 0, true);
        let line = progress.line(Duration::ZERO);
        assert_eq!(line, "rv-perf: 100 %  0.0 of 0.0 MiB  0.0 MiB/s");
    }
}
