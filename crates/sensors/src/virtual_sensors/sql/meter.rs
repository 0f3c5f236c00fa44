//! The work of one execution is counted and bounded.
//!
//! It is counted in steps and not in time, so the same rows always give the same output.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::virtual_sensors::limits::EXECUTION_STEPS_MAX;

/// Bytes of a text that cost a step where an expression reads them.
const TEXT_BYTES_READ: usize = 64;
/// Bytes of a text that cost a step where an expression makes them.
const TEXT_BYTES_MADE: usize = 16;
/// Steps between two looks at whether the server stops: a power of two.
const LOOK_STEPS: u64 = 4_096;

/// Counts the steps of an execution.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    steps: Cell<u64>,
    /// Whether the caller wants executions to end in their middle.
    end: Arc<AtomicBool>,
    was_cut: Cell<bool>,
}

impl Meter {
    /// Executions end in their middle when the flag is set.
    pub(crate) fn ending_with(end: Arc<AtomicBool>) -> Self {
        Self { end, ..Self::default() }
    }

    /// An execution begins.
    pub(crate) fn begin(&self) {
        self.steps.set(0);
    }

    /// Counts steps.
    ///
    /// # Errors
    /// The execution has done more than it may.
    pub(crate) fn spend(&self, steps: u64) -> Result<(), String> {
        let before = self.steps.get();
        let after = before.saturating_add(steps);
        self.steps.set(after);
        if after > EXECUTION_STEPS_MAX || before / LOOK_STEPS != after / LOOK_STEPS || before == 0 {
            return self.look(after);
        }
        Ok(())
    }

    /// Counts the reading of a text.
    pub(crate) fn spend_read(&self, text: &str) -> Result<(), String> {
        self.spend((text.len() / TEXT_BYTES_READ) as u64)
    }

    /// Counts the making of a text.
    pub(crate) fn spend_made(&self, text: &str) -> Result<(), String> {
        self.spend((text.len() / TEXT_BYTES_MADE) as u64)
    }

    /// The flag that ends executions.
    pub(crate) fn end(&self) -> &Arc<AtomicBool> {
        &self.end
    }

    /// Whether an execution was ended in its middle because the caller wanted that. Looks whether the caller wants it now.
    pub(crate) fn is_cut(&self) -> bool {
        if self.end.load(Ordering::Relaxed) {
            self.was_cut.set(true);
        }
        self.was_cut.get()
    }

    /// Whether an execution was ended in its middle.
    pub(crate) fn was_cut(&self) -> bool {
        self.was_cut.get()
    }

    #[cold]
    fn look(&self, steps: u64) -> Result<(), String> {
        if self.is_cut() {
            return Err("the server stops".to_owned());
        }
        if steps > EXECUTION_STEPS_MAX {
            return Err(format!(
                "the execution did more than {EXECUTION_STEPS_MAX} steps (EXECUTION_STEPS_MAX) and was ended; use smaller windows, or fewer \
                 combinations of rows"
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_execution_ends_at_the_limit_or_when_the_server_stops() {
        let meter = Meter::default();
        meter.spend(EXECUTION_STEPS_MAX).unwrap();
        assert!(meter.spend(1).unwrap_err().contains("EXECUTION_STEPS_MAX"));
        meter.begin();
        meter.spend(1).unwrap();
        let end = Arc::new(AtomicBool::new(false));
        let meter = Meter::ending_with(Arc::clone(&end));
        meter.spend(LOOK_STEPS + 1).unwrap();
        end.store(true, Ordering::Relaxed);
        assert!(!meter.was_cut());
        let ended = (0..=LOOK_STEPS).find_map(|_| meter.spend(1).err());
        assert_eq!(ended.as_deref(), Some("the server stops"));
        assert!(meter.was_cut());
    }
}
