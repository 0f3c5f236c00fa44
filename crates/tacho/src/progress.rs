//! Progress of commands that take longer than a second: a bar on a terminal, now and then a line elsewhere.

use std::io::{self, IsTerminal, Write};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use indicatif::{HumanBytes, HumanCount, ProgressBar, ProgressStyle};

use crate::limits::{PROGRESS_AFTER, PROGRESS_LINE_INTERVAL};

/// Counts bytes for whoever watches.
#[derive(Debug)]
pub(crate) struct Progress {
    what: &'static str,
    began: Instant,
    bar: Option<ProgressBar>,
    told: Duration,
    terminal: bool,
    /// Rows are counted, not bytes.
    rows: bool,
}

impl Progress {
    /// Nothing is shown yet. `what` is a verb such as "checking".
    pub(crate) fn new(what: &'static str) -> Self {
        let terminal = io::stderr().is_terminal();
        Self { what, began: Instant::now(), bar: None, told: Duration::ZERO, terminal, rows: false }
    }

    /// The same for rows.
    pub(crate) fn rows(what: &'static str) -> Self {
        let mut progress = Self::new(what);
        progress.rows = true;
        progress
    }

    /// `done` of `total` bytes are done.
    pub(crate) fn at(&mut self, done: u64, total: u64) {
        let elapsed = self.began.elapsed();
        if elapsed < PROGRESS_AFTER {
            return;
        }
        if self.terminal {
            let (what, rows) = (self.what, self.rows);
            let bar = self.bar.get_or_insert_with(|| bar(what, rows));
            bar.set_length(total);
            bar.set_position(done);
        } else if elapsed - self.told >= PROGRESS_LINE_INTERVAL {
            self.told = elapsed;
            let percent = if total == 0 { 100 } else { u128::from(done) * 100 / u128::from(total) };
            let count = |number| match self.rows {
                true => format!("{} rows", HumanCount(number)),
                false => HumanBytes(number).to_string(),
            };
            let (done, total) = (count(done), count(total));
            // Nobody is left to tell when standard error is gone.
            drop(writeln!(io::stderr(), "{} {percent} % ({done} of {total})", self.what));
        }
    }

    /// As [`at`](Self::at), for work that can be ended: Ctrl-C ends the process, so it goes on here.
    pub(crate) fn watch(&mut self) -> impl FnMut(u64, u64) -> ControlFlow<()> {
        |done, total| {
            self.at(done, total);
            ControlFlow::Continue(())
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn bar(what: &'static str, rows: bool) -> ProgressBar {
    let bar = ProgressBar::new(0);
    let style = ProgressStyle::with_template(match rows {
        true => "{msg} {bar:40} {human_pos}/{human_len} rows  {per_sec}  {eta} left",
        false => "{msg} {bar:40} {bytes}/{total_bytes}  {bytes_per_sec}  {eta} left",
    });
    bar.set_style(style.expect("BUG: the template is constant and correct"));
    bar.set_message(what);
    bar
}
