//! From samples to an observation. Pure functions.

use std::collections::BTreeMap;

use super::interface::{Identity, ProbeError, Sample};
use crate::expression::Increase;
use crate::observation::Observation;

/// The observation of a server. Counters are compared with `before`, which is `window_s` seconds older, or with the start of the
/// server. Without either they are unknown.
pub fn observation(
    identity: &Identity,
    before: Option<(&Sample, f64)>,
    after: &Sample,
) -> Result<Observation, ProbeError> {
    let counters = match (before, after.uptime_s) {
        (Some((before, window_s)), _) => since(before, after, window_s)?,
        (None, Some(uptime_s)) => {
            let start = |after: &f64| Increase { before: 0.0, after: *after, window_s: uptime_s };
            after.counters.iter().map(|(name, after)| (name.clone(), start(after))).collect()
        }
        (None, None) => BTreeMap::new(),
    };
    Ok(Observation {
        variant: identity.variant.clone(),
        version: identity.version.clone(),
        role: identity.role.clone(),
        settings: after.settings.clone(),
        facts: after.facts.clone(),
        counters,
        groups: after.groups.clone(),
    })
}

fn since(before: &Sample, after: &Sample, window_s: f64) -> Result<BTreeMap<String, Increase>, ProbeError> {
    let mut counters = BTreeMap::new();
    for (name, now) in &after.counters {
        let Some(earlier) = before.counters.get(name) else { continue };
        if now < earlier {
            let what = format!("`{name}` went back from {earlier} to {now} in the window: the server was restarted; try again");
            return Err(ProbeError(what));
        }
        counters.insert(name.clone(), Increase { before: *earlier, after: *now, window_s });
    }
    Ok(counters)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(reads: f64, uptime_s: Option<f64>) -> Sample {
        Sample { counters: BTreeMap::from([("reads".to_owned(), reads)]), uptime_s, ..Sample::default() }
    }

    fn increase(before: Option<(&Sample, f64)>, after: &Sample) -> Result<Option<Increase>, ProbeError> {
        let identity = Identity {
            product: "hbase",
            title: String::new(),
            variant: "hbase".into(),
            version: None,
            role: None,
        };
        observation(&identity, before, after).map(|it| it.counters.get("reads").copied())
    }

    #[test]
    fn counters_are_compared_with_the_first_sample_or_the_start() {
        let (first, second) = (sample(10.0, Some(90.0)), sample(40.0, Some(100.0)));
        let expected = Increase { before: 10.0, after: 40.0, window_s: 10.5 };
        assert_eq!(increase(Some((&first, 10.5)), &second), Ok(Some(expected)));
        let expected = Increase { before: 0.0, after: 40.0, window_s: 100.0 };
        assert_eq!(increase(None, &second), Ok(Some(expected)));
        assert_eq!(increase(None, &sample(40.0, None)), Ok(None));
        assert!(increase(Some((&second, 1.0)), &first).unwrap_err().to_string().contains("restarted"));
    }
}
