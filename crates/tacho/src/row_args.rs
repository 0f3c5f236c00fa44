//! The options of commands that select rows of a table.

use anyhow::ensure;
use clap::Args;
use hub::bulk::parse_matcher;
use model::calendar::Moment;
use model::{TimeRange, Timestamp};
use store::TagMatcher;

/// Which rows of a table a command works on.
#[derive(Debug, Args)]
pub(crate) struct RowArgs {
    /// Only series with this tag: TAG=VALUE, TAG!=VALUE, TAG~PATTERN, TAG!~PATTERN. If repeated, all conditions must hold
    #[arg(long = "where", value_name = "CONDITION", value_parser = condition)]
    conditions: Vec<(String, TagMatcher)>,
    /// Only rows at or after this time, such as 2024-05-01T00:00:00Z
    #[arg(long, value_name = "TIME")]
    from: Option<Moment>,
    /// Only rows before this time
    #[arg(long, value_name = "TIME")]
    to: Option<Moment>,
}

fn condition(text: &str) -> Result<(String, TagMatcher), String> {
    Ok((text.to_owned(), parse_matcher(text)?))
}

impl RowArgs {
    /// Refuses an empty range of time.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        if let (Some(from), Some(to)) = (self.from, self.to) {
            ensure!(from < to, "no time lies between --from {from} and --to {to}");
        }
        Ok(())
    }

    /// The conditions as they were typed.
    pub(crate) fn conditions(&self) -> Vec<&str> {
        self.conditions.iter().map(|(text, _)| text.as_str()).collect()
    }

    /// The conditions on tags.
    pub(crate) fn matchers(&self) -> Vec<TagMatcher> {
        self.conditions.iter().map(|(_, matcher)| matcher.clone()).collect()
    }

    /// The time of `--from` in microseconds.
    pub(crate) fn start_us(&self) -> Option<i64> {
        self.from.map(Moment::micros)
    }

    /// The time of `--to` in microseconds.
    pub(crate) fn end_us(&self) -> Option<i64> {
        self.to.map(Moment::micros)
    }

    /// The range of time.
    pub(crate) fn range(&self) -> TimeRange {
        let bound = |micros: Option<i64>, default| micros.map_or(default, Timestamp::from_micros);
        TimeRange::new(bound(self.start_us(), TimeRange::ALL.start), bound(self.end_us(), TimeRange::ALL.end))
    }
}
