//! The tap of the alarm rules wants the series of devices whose profile has rules.

use std::sync::Arc;

use super::engine::RuleBook;
use crate::registry::Registry;
use crate::taps::{FoundSeries, SeriesObserver, Tap};

/// Makes the tap of the alarm rules want the series that doors look up.
#[derive(Debug)]
pub(crate) struct RuleSeries {
    pub(crate) book: Arc<RuleBook>,
    pub(crate) tap: Arc<Tap>,
}

impl SeriesObserver for RuleSeries {
    fn found_series(&self, _: &Registry, found: &FoundSeries<'_>) {
        if let Some(rules) = self.book.of(found.profile) {
            self.tap.want(found.series, found.device, rules.wanted());
        }
    }
}
