//! A service level objective: `p99<=20ms`, `p99.9<5ms, errors<=0.1%`.

mod measured;
mod outcome;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

pub use measured::SAMPLES_BEHIND_QUANTILE;
pub use outcome::Outcome;

use crate::result::percentile;

/// The smallest share of the planned rate that must be achieved.
const ACHIEVED_MIN: f64 = 0.99;
/// The largest growth of the backlog, as a share of the rate. A growing backlog hides future latency.
const BACKLOG_GROWTH_MAX: f64 = 0.005;
/// The share of failures that is allowed by default.
const ERROR_SHARE_DEFAULT: f64 = 0.001;

/// The conditions under which a rate is sustained.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Objective {
    /// 0.99 for p99.
    pub quantile: f64,
    /// Largest response time at that quantile, microseconds.
    pub limit_us: f64,
    /// The largest share of failures.
    pub error_share_max: f64,
}

/// The text is not an objective.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not an objective: {what}. Write `p99<=20ms` or `p99.9<=500us, errors<=0.1%`")]
pub struct ParseError {
    text: String,
    what: String,
}

impl Objective {
    /// The reasons why an outcome does not meet the objective; empty if it does.
    pub fn failures(&self, outcome: &Outcome) -> Vec<String> {
        let mut failures = Vec::new();
        if outcome.quantile_us > self.limit_us {
            failures.push(format!(
                "{} is {:.2} ms, {:.2} ms are allowed",
                percentile(self.quantile),
                outcome.quantile_us / 1e3,
                self.limit_us / 1e3
            ));
        }
        if outcome.achieved_per_s < ACHIEVED_MIN * outcome.rate_per_s {
            failures.push(format!(
                "{:.0}/s of {:.0}/s were achieved",
                outcome.achieved_per_s, outcome.rate_per_s
            ));
        }
        if outcome.error_share > self.error_share_max {
            failures.push(format!(
                "{:.3} % failed, {:.3} % are allowed",
                outcome.error_share * 100.0,
                self.error_share_max * 100.0
            ));
        }
        if outcome.backlog_growth > BACKLOG_GROWTH_MAX {
            failures
                .push(format!("the backlog grows by {:.1} % of the rate", outcome.backlog_growth * 100.0));
        }
        failures
    }
}

impl fmt::Display for Objective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (quantile, errors) = (percentile(self.quantile), self.error_share_max * 100.0);
        write!(f, "{quantile}<={}ms, errors<={errors}%", self.limit_us / 1e3)
    }
}

impl FromStr for Objective {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let wrong = |what: String| ParseError { text: text.to_owned(), what };
        let mut quantile = None;
        let mut error_share_max = ERROR_SHARE_DEFAULT;
        for term in text.split(',') {
            let (name, limit) =
                term.split_once('<').ok_or_else(|| wrong(format!("`{}` has no `<=`", term.trim())))?;
            let (name, limit) = (name.trim(), limit.trim_start_matches('=').trim());
            if name == "errors" {
                error_share_max =
                    share(limit).ok_or_else(|| wrong(format!("`{limit}` is not a share of failures")))?;
            } else {
                let percent = name.strip_prefix('p').and_then(|digits| digits.parse::<f64>().ok());
                let percent = percent
                    .filter(|p| (0.0..100.0).contains(p))
                    .ok_or_else(|| wrong(format!("`{name}` is neither a percentile nor `errors`")))?;
                let limit_us = micros(limit)
                    .ok_or_else(|| wrong(format!("`{limit}` is not a time; it needs a unit, us, ms or s")))?;
                if quantile.replace((percent / 100.0, limit_us)).is_some() {
                    return Err(wrong("it names two percentiles, and a search has one edge".to_owned()));
                }
            }
        }
        let (quantile, limit_us) = quantile.ok_or_else(|| wrong("it names no percentile".to_owned()))?;
        Ok(Self { quantile, limit_us, error_share_max })
    }
}

fn share(text: &str) -> Option<f64> {
    let value = match text.strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().ok()? / 100.0,
        None => text.parse().ok()?,
    };
    (0.0..=1.0).contains(&value).then_some(value)
}

fn micros(text: &str) -> Option<f64> {
    // `s` comes last, because the other two units end with it.
    let (number, factor) = [("us", 1.0), ("ms", 1e3), ("s", 1e6)]
        .into_iter()
        .find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, factor)))?;
    number.trim().parse::<f64>().ok().map(|value| value * factor).filter(|us| *us > 0.0 && us.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objectives_are_read_and_written() {
        let plain: Objective = "p99<=20ms".parse().unwrap();
        assert_eq!(plain, Objective { quantile: 0.99, limit_us: 20_000.0, error_share_max: 0.001 });
        let full: Objective = "p99.9 < 500us, errors <= 1%".parse().unwrap();
        assert!(
            (full.quantile - 0.999).abs() < 1e-12 && full.limit_us == 500.0 && full.error_share_max == 0.01
        );
        assert_eq!(full.to_string(), "p99.9<=0.5ms, errors<=1%");
        assert_eq!(full.to_string().parse::<Objective>().unwrap(), full);
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, expected) in [
            ("p99", "has no `<=`"),
            ("p99<=20", "it needs a unit"),
            ("q99<=20ms", "neither a percentile"),
            ("p120<=1s", "neither a percentile"),
            ("pnan<=1s", "neither a percentile"),
            ("p99<=nanms", "not a time"),
            ("p99<=infs", "not a time"),
            ("p99<=1e400s", "not a time"),
            ("p99<=1ms,errors<=nan", "not a share"),
            ("errors<=1%", "names no percentile"),
            ("p99<=1ms,p50<=1ms", "two percentiles"),
            ("p99<=1ms,errors<=300%", "not a share"),
        ] {
            let error = text.parse::<Objective>().unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn every_way_to_fail_is_seen() {
        let objective: Objective = "p99<=20ms".parse().unwrap();
        let good = Outcome {
            rate_per_s: 100.0,
            achieved_per_s: 100.0,
            quantile_us: 20_000.0,
            p50_us: None,
            p99_us: None,
            error_share: 0.0,
            backlog_growth: 0.0,
            generator_fault: None,
        };
        assert!(objective.failures(&good).is_empty());
        for bad in [
            Outcome { quantile_us: 20_001.0, ..good.clone() },
            Outcome { achieved_per_s: 98.0, ..good.clone() },
            Outcome { error_share: 0.01, ..good.clone() },
            Outcome { backlog_growth: 0.1, ..good.clone() },
        ] {
            assert_eq!(objective.failures(&bad).len(), 1, "{bad:?}");
        }
    }
}
