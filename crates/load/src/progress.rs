//! The progress display: one line per second, rewritten in place on a terminal, plain elsewhere. It goes to standard
//! error; standard output is for the result.

use std::io::{IsTerminal as _, stderr};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use crate::recorder::Second;

/// Shows progress.
#[derive(Debug)]
pub struct Progress {
    bar: Option<ProgressBar>,
    is_plain: bool,
    /// The prefix of every line.
    label: String,
}

impl Progress {
    /// On standard error; nothing if `silent`.
    pub fn new(silent: bool) -> Self {
        let bar = (!silent && stderr().is_terminal()).then(|| {
            let style =
                ProgressStyle::with_template("{spinner} {msg}").expect("BUG: the template is constant");
            ProgressBar::new_spinner().with_style(style)
        });
        let is_plain = !silent && bar.is_none();
        Self { bar, is_plain, label: String::new() }
    }

    /// Only on a terminal: the caller prints its own line at the end.
    pub fn terminal_only() -> Self {
        let mut progress = Self::new(false);
        progress.is_plain = false;
        progress
    }

    /// The same with a prefix for its lines.
    pub fn labelled(mut self, label: String) -> Self {
        self.label = label;
        self
    }

    /// Shows a step that takes a while.
    pub fn step(&self, text: String) {
        self.show(&text);
    }

    /// Shows a text that changes quickly, only on terminals.
    pub fn update(&self, text: impl FnOnce() -> String) {
        if let Some(bar) = &self.bar {
            bar.set_message(self.line(&text()));
            bar.tick();
        }
    }

    /// Shows a second of the load.
    pub fn second(&self, second: &Second, load: Duration) {
        let ms = |us: u64| us as f64 / 1e3;
        let total = second.total();
        self.show(&format!(
            "{}  {:>8} acked/s  {:>8} sent/s  p99 {:>8.3} ms  lag p99 {:>7.3} ms  {} errors",
            position(second.index + 1, load),
            total.completed,
            total.sent,
            ms(total.clocks.response.quantile_us(0.99)),
            ms(total.clocks.lag.quantile_us(0.99)),
            second.errors
        ));
    }

    fn show(&self, text: &str) {
        match &self.bar {
            Some(bar) => {
                bar.set_message(self.line(text));
                bar.tick();
            }
            None if self.is_plain => eprintln!("{}", self.line(text)),
            None => {}
        }
    }

    fn line(&self, text: &str) -> String {
        format!("{}{text}", self.label)
    }
}

/// The position in a load. Late answers belong to it and do not make it longer.
pub fn position(seconds: u64, load: Duration) -> String {
    if load == Duration::MAX {
        return format!("{seconds:>4} s");
    }
    let planned = load.as_secs_f64();
    if seconds as f64 > planned.ceil() {
        return format!("{planned:>4}/{planned} s, waiting for answers");
    }
    format!("{:>4}/{planned} s", planned.min(seconds as f64))
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_seconds_are_shown_than_were_planned() {
        let of = |seconds, load_ms| position(seconds, Duration::from_millis(load_ms));
        assert_eq!(of(1, 6_000), "   1/6 s");
        assert_eq!(of(6, 6_000), "   6/6 s");
        assert_eq!(of(7, 6_000), "   6/6 s, waiting for answers");
        assert_eq!(of(3, 2_500), " 2.5/2.5 s");
        assert_eq!(of(4, 2_500), " 2.5/2.5 s, waiting for answers");
        assert_eq!(position(7, Duration::MAX), "   7 s");
    }

    #[test]
    fn lines_begin_with_what_they_are_of() {
        let progress = Progress::new(true).labelled("process 1 of 3: ".to_owned());
        assert_eq!(progress.line("   1/6 s"), "process 1 of 3:    1/6 s");
        assert_eq!(Progress::new(true).line("run"), "run");
        assert!(!Progress::terminal_only().is_plain);
    }
}
