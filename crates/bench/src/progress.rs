//! What is seen while a run goes on: one line a second, rewritten in place on a terminal, plain otherwise. Goes to
//! standard error; standard output belongs to the result.

use std::io::{IsTerminal as _, stderr};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use crate::recorder::Second;

/// Shows progress.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    silent: bool,
}

impl Progress {
    /// On standard error; `silent` shows nothing.
    pub(crate) fn new(silent: bool) -> Self {
        let bar = (!silent && stderr().is_terminal()).then(|| {
            let style =
                ProgressStyle::with_template("{spinner} {msg}").expect("BUG: the template is constant");
            ProgressBar::new_spinner().with_style(style)
        });
        Self { bar, silent }
    }

    /// A step that takes a while.
    pub(crate) fn step(&self, text: String) {
        self.show(text);
    }

    /// Something that changes quickly; too much for plain lines.
    pub(crate) fn fleeting(&self, text: impl FnOnce() -> String) {
        if let Some(bar) = &self.bar {
            bar.set_message(text());
            bar.tick();
        }
    }

    /// A second of the load.
    pub(crate) fn second(&self, second: &Second, load: Duration) {
        let ms = |us: u64| us as f64 / 1e3;
        let total = second.total();
        let of = if load == Duration::MAX { String::new() } else { format!("/{:.0}", load.as_secs_f64()) };
        self.show(format!(
            "{:>4}{of} s  {:>8} acked/s  {:>8} sent/s  p99 {:>8.3} ms  lag p99 {:>7.3} ms  {} errors",
            second.index + 1,
            total.completed,
            total.sent,
            ms(total.clocks.response.quantile_us(0.99)),
            ms(total.clocks.lag.quantile_us(0.99)),
            second.errors
        ));
    }

    fn show(&self, text: String) {
        match &self.bar {
            Some(bar) => {
                bar.set_message(text);
                bar.tick();
            }
            None if self.silent => {}
            None => eprintln!("{text}"),
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
