//! Shows the progress of commands that take longer than a second: a bar on a terminal, otherwise a line every ten seconds.

use std::io::{self, IsTerminal, Write};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use indicatif::{HumanBytes, HumanCount, ProgressBar, ProgressStyle};

use crate::limits::{PROGRESS_AFTER, PROGRESS_LINE_INTERVAL, PROGRESS_TICK};

/// The progress of one command, in bytes or rows.
#[derive(Debug)]
pub(crate) struct Progress {
    what: &'static str,
    began: Instant,
    bar: Option<ProgressBar>,
    last_line: Duration,
    terminal: bool,
    /// Whether rows are counted instead of bytes.
    rows: bool,
}

/// The output of a moment.
#[derive(Debug, PartialEq, Eq)]
enum Shown {
    Nothing,
    Bar,
    Line(String),
}

impl Progress {
    /// Counts bytes. `what` is a verb such as "checking".
    pub(crate) fn new(what: &'static str) -> Self {
        let terminal = io::stderr().is_terminal();
        Self { what, began: Instant::now(), bar: None, last_line: Duration::ZERO, terminal, rows: false }
    }

    /// Counts rows.
    pub(crate) fn rows(what: &'static str) -> Self {
        let mut progress = Self::new(what);
        progress.rows = true;
        progress
    }

    /// `done` of `total` bytes or rows are done.
    pub(crate) fn at(&mut self, done: u64, total: u64) {
        self.show(done, Some(total));
    }

    /// `done` are done, of an unknown total.
    pub(crate) fn at_least(&mut self, done: u64) {
        self.show(done, None);
    }

    /// Waits for a future, and shows `done` if that takes long.
    pub(crate) async fn while_waiting<T>(
        &mut self,
        done: u64,
        coming: &mut (impl Future<Output = T> + Unpin),
    ) -> T {
        loop {
            match tokio::time::timeout(PROGRESS_TICK, &mut *coming).await {
                Ok(come) => return come,
                Err(_) => self.at_least(done),
            }
        }
    }

    fn show(&mut self, done: u64, total: Option<u64>) {
        match self.shown(self.began.elapsed(), done, total) {
            Shown::Nothing => {}
            Shown::Bar => {
                let (what, rows, known) = (self.what, self.rows, total.is_some());
                let bar = self.bar.get_or_insert_with(|| bar(what, rows, known));
                if let Some(total) = total {
                    bar.set_length(total);
                }
                bar.set_position(done);
                bar.tick();
            }
            // A closed standard error cannot be reported anywhere.
            Shown::Line(line) => drop(writeln!(io::stderr(), "{line}")),
        }
    }

    fn shown(&mut self, elapsed: Duration, done: u64, total: Option<u64>) -> Shown {
        if elapsed < PROGRESS_AFTER {
            return Shown::Nothing;
        }
        if self.terminal {
            return Shown::Bar;
        }
        if elapsed - self.last_line < PROGRESS_LINE_INTERVAL {
            return Shown::Nothing;
        }
        self.last_line = elapsed;
        let count = |number| match self.rows {
            true => format!("{} rows", HumanCount(number)),
            false => HumanBytes(number).to_string(),
        };
        let (what, counted) = (self.what, count(done));
        Shown::Line(match total {
            None => format!("{what} {counted}"),
            Some(0) => format!("{what} 100 % ({counted} of {counted})"),
            Some(total) => {
                let percent = u128::from(done) * 100 / u128::from(total);
                format!("{what} {percent} % ({counted} of {})", count(total))
            }
        })
    }

    /// A callback for [`at`](Self::at). It never stops the work, because Ctrl-C ends the process.
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

fn bar(what: &'static str, rows: bool, total_known: bool) -> ProgressBar {
    let bar = if total_known { ProgressBar::new(0) } else { ProgressBar::new_spinner() };
    let style = ProgressStyle::with_template(match (total_known, rows) {
        (true, true) => "{msg} {bar:40} {human_pos}/{human_len} rows  {per_sec}  {eta} left",
        (true, false) => "{msg} {bar:40} {bytes}/{total_bytes}  {bytes_per_sec}  {eta} left",
        (false, true) => "{spinner} {msg} {human_pos} rows",
        (false, false) => "{spinner} {msg} {bytes}",
    });
    bar.set_style(style.expect("BUG: the template is constant and correct"));
    bar.set_message(what);
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    fn progress(terminal: bool, rows: bool) -> Progress {
        let mut progress = Progress::new("checking");
        (progress.terminal, progress.rows) = (terminal, rows);
        progress
    }

    #[test]
    fn a_terminal_gets_a_bar_after_a_second() {
        let mut progress = progress(true, false);
        assert_eq!(progress.shown(PROGRESS_AFTER / 2, 1, Some(10)), Shown::Nothing);
        assert_eq!(progress.shown(PROGRESS_AFTER, 2, Some(10)), Shown::Bar);
        assert_eq!(progress.shown(PROGRESS_AFTER, 2, None), Shown::Bar);
    }

    #[test]
    fn a_file_gets_a_line_per_interval() {
        let mut bytes = progress(false, false);
        assert_eq!(bytes.shown(PROGRESS_AFTER, 1, Some(2)), Shown::Nothing);
        let line = |text: &str| Shown::Line(text.to_owned());
        let after = |times: u32| PROGRESS_LINE_INTERVAL * times;
        assert_eq!(bytes.shown(after(1), 512, Some(2_048)), line("checking 25 % (512 B of 2.00 KiB)"));
        assert_eq!(bytes.shown(after(1) + PROGRESS_AFTER, 1_024, Some(2_048)), Shown::Nothing);
        assert_eq!(bytes.shown(after(2), 1_024, None), line("checking 1.00 KiB"));
        let mut rows = progress(false, true);
        assert_eq!(rows.shown(after(1), 0, Some(0)), line("checking 100 % (0 rows of 0 rows)"));
        assert_eq!(
            rows.shown(after(2), 1_000, Some(3_000)),
            line("checking 33 % (1,000 rows of 3,000 rows)")
        );
    }
}
