//! The evaluator against a model that looks at the whole history for each decision.

use proptest::prelude::*;

use super::*;

/// Two rules that create and one that clears, each with its own condition.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Simple,
    Repeating(usize),
    Duration(i64),
}

#[derive(Debug, Clone, Copy)]
struct NaiveRule {
    above: Option<i64>,
    below: Option<i64>,
    kind: Kind,
}

impl NaiveRule {
    fn json(self) -> Json {
        let spec = match self.kind {
            Kind::Simple => simple(),
            Kind::Repeating(count) => repeating(count as i64),
            Kind::Duration(seconds) => duration(seconds),
        };
        let above = self.above.map(|limit| number("t", "GREATER", limit as f64));
        let below = self.below.map(|limit| number("t", "LESS", limit as f64));
        rule(above.into_iter().chain(below).collect(), spec)
    }

    /// Whether the rule is true at the end of the events that count for it.
    fn is_true(self, events: &[(i64, i64)]) -> bool {
        let holds = |value: i64| {
            self.above.is_none_or(|limit| value > limit) && self.below.is_none_or(|limit| value < limit)
        };
        let run: Vec<i64> = events.iter().rev().take_while(|(_, v)| holds(*v)).map(|(ts, _)| *ts).collect();
        match (self.kind, run.first(), run.last()) {
            (Kind::Simple, newest, _) => newest.is_some(),
            (Kind::Repeating(count), _, _) => run.len() >= count,
            (Kind::Duration(seconds), Some(newest), Some(first)) => newest - first > seconds * SECOND,
            (Kind::Duration(_), _, _) => false,
        }
    }
}

/// The transitions of a history. A rule counts the events since it was last made to begin again: a rule that creates since the
/// alarm was cleared, the one that clears since a rule that creates was true. An event that another rule decided before it is not
/// asked of a rule.
fn naive(rules: [NaiveRule; 3], history: &[(i64, i64)]) -> Vec<Option<Transition>> {
    let [critical, warning, clear] = rules;
    let mut asked: [Vec<(i64, i64)>; 3] = Default::default();
    let mut active: Option<Severity> = None;
    let mut transitions = Vec::new();
    for &event in history {
        let mut decided = None;
        for (at, (rule, severity)) in
            [(critical, Severity::Critical), (warning, Severity::Warning)].into_iter().enumerate()
        {
            asked[at].push(event);
            if rule.is_true(&asked[at]) {
                decided = Some(severity);
                break;
            }
        }
        transitions.push(match decided {
            Some(severity) => {
                asked[2].clear();
                let before = active;
                active = Some(before.map_or(severity, |before| before.min(severity)));
                match before {
                    None => Some(Transition::Create { severity }),
                    Some(before) if before < severity => None,
                    Some(before) => Some(Transition::Update { severity, changed: before != severity }),
                }
            }
            None if active.is_some() => {
                asked[2].push(event);
                clear.is_true(&asked[2]).then(|| {
                    asked.iter_mut().for_each(Vec::clear);
                    active = None;
                    Transition::Clear
                })
            }
            None => None,
        });
    }
    transitions
}

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![
        Just(Kind::Simple),
        (1_usize..4).prop_map(Kind::Repeating),
        (1_i64..6).prop_map(Kind::Duration)
    ]
}

proptest! {
    #[test]
    fn the_evaluator_decides_as_the_model(
        kinds in [kind(), kind(), kind()],
        history in prop::collection::vec((1_i64..4, 0_i64..40), 0..60),
    ) {
        let rules = [
            NaiveRule { above: Some(30), below: None, kind: kinds[0] },
            NaiveRule { above: Some(20), below: None, kind: kinds[1] },
            NaiveRule { above: None, below: Some(10), kind: kinds[2] },
        ];
        let create = json!({"CRITICAL": rules[0].json(), "WARNING": rules[1].json()});
        let mut device = Device::new(&profile(create, rules[2].json()));
        let mut ts = 0;
        let history: Vec<(i64, i64)> = history
            .into_iter()
            .map(|(seconds, value)| {
                ts += seconds * SECOND;
                (ts, value)
            })
            .collect();
        let found: Vec<_> =
            history.iter().map(|(ts, value)| device.row(*ts, "t", ValueRef::I64(*value))).collect();
        prop_assert_eq!(found, naive(rules, &history));
    }
}
