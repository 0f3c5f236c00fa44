//! Turns the samples of a probe into an observation.

use std::collections::BTreeMap;
use std::time::Duration;

use super::contract::{Probe, Sample};
use super::error::ProbeError;
use crate::expression::Increase;
use crate::observation::Observation;

/// Observes a target. With a window the counters are read twice, and `sleep` waits in between; without one they count since
/// the target has started.
pub fn observe(
    probe: &mut dyn Probe,
    window: Option<Duration>,
    sleep: &mut dyn FnMut(Duration),
) -> Result<Observation, ProbeError> {
    let before = match window {
        Some(window) => {
            let sample = probe.sample()?;
            sleep(window);
            Some((sample, window))
        }
        None => None,
    };
    let after = probe.sample()?;
    let counters = increases(before.as_ref().map(|(sample, window)| (sample, *window)), &after);
    let identity = probe.identity().clone();
    Ok(Observation {
        variant: identity.variant,
        version: identity.version,
        role: identity.role,
        settings: after.settings,
        facts: after.facts,
        counters,
        groups: after.groups,
        hidden: after.hidden,
        unset: after.unset,
    })
}

/// The increase of each counter since the earlier sample, or since the start of the target.
fn increases(before: Option<(&Sample, Duration)>, after: &Sample) -> BTreeMap<String, Increase> {
    // A target that has started again in the window counts from 0.
    let before = before.filter(|(sample, _)| sample.uptime_s <= after.uptime_s);
    let window_s = match before {
        None => after.uptime_s.unwrap_or_default(),
        Some((sample, window)) => window_s(sample.uptime_s, after.uptime_s, window),
    };
    let increase = |(name, value): (&String, &f64)| {
        let before = before.and_then(|(sample, _)| sample.counters.get(name).copied()).unwrap_or_default();
        (name.clone(), Increase { before, after: *value, window_s })
    };
    after.counters.iter().map(increase).collect()
}

/// The time between two samples. Uptimes in whole seconds are less exact than the time that was slept.
fn window_s(before: Option<f64>, after: Option<f64>, window: Duration) -> f64 {
    let slept = window.as_secs_f64();
    match (before, after) {
        (Some(before), Some(after)) => {
            let whole = before.fract() == 0.0 && after.fract() == 0.0;
            let difference = after - before;
            if whole && (difference - slept).abs() <= 1.0 { slept } else { difference }
        }
        _ => slept,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::contract::Identity;

    /// A probe that gives these samples, each once.
    struct Samples(Identity, Vec<Sample>);

    impl Probe for Samples {
        fn identity(&self) -> &Identity {
            &self.0
        }

        fn sample(&mut self) -> Result<Sample, ProbeError> {
            Ok(self.1.remove(0))
        }
    }

    fn sample(uptime_s: Option<f64>, reads: f64) -> Sample {
        Sample { counters: BTreeMap::from([("reads".to_owned(), reads)]), uptime_s, ..Sample::default() }
    }

    fn reads(samples: Vec<Sample>, window: Option<Duration>) -> Increase {
        let identity = Identity {
            product: "p",
            title: "P".to_owned(),
            variant: "p".to_owned(),
            version: None,
            role: None,
        };
        let mut slept = Duration::ZERO;
        let mut probe = Samples(identity, samples);
        let observation = observe(&mut probe, window, &mut |time| slept += time).unwrap();
        assert_eq!((slept, probe.1.len()), (window.unwrap_or_default(), 0));
        observation.counters["reads"]
    }

    #[test]
    fn counters_count_since_the_start_or_in_the_window() {
        let increase = |before, after, window_s| Increase { before, after, window_s };
        let ten = Some(Duration::from_secs(10));
        let since_start = reads(vec![sample(Some(60.0), 30.0)], None);
        assert_eq!(since_start, increase(0.0, 30.0, 60.0));
        assert_eq!(reads(vec![sample(None, 30.0)], None), increase(0.0, 30.0, 0.0));
        let exact = vec![sample(Some(60.5), 30.0), sample(Some(71.0), 40.0)];
        assert_eq!(reads(exact, ten), increase(30.0, 40.0, 10.5));
        let whole = vec![sample(Some(60.0), 30.0), sample(Some(71.0), 40.0)];
        assert_eq!(reads(whole, ten), increase(30.0, 40.0, 10.0));
        let unknown = vec![sample(None, 30.0), sample(None, 40.0)];
        assert_eq!(reads(unknown, ten), increase(30.0, 40.0, 10.0));
    }

    #[test]
    fn a_target_that_starts_again_in_the_window_counts_from_zero() {
        let samples = vec![sample(Some(600.0), 3_000.0), sample(Some(4.0), 40.0)];
        let expected = Increase { before: 0.0, after: 40.0, window_s: 4.0 };
        assert_eq!(reads(samples, Some(Duration::from_secs(10))), expected);
    }
}
