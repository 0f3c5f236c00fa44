//! Tests of the conversion of phases into segments, and of error texts.

use super::*;

const FILE: &str = r#"
[scenario]
name = "x"
about = "x"
driver = "tcp"
[[operation]]
name = "connect"
[[operation]]
name = "request"
[[phase]]
name = "c"
test = "maxconn"
connections = 5_000
rate = 1_000
[[phase]]
name = "s"
test = "cps"
connections = 3_000
rate = 3_000
duration = "10s"
[[phase]]
name = "q"
test = "qps"
connections = 50
rate = 1_000
duration = "10s"
"#;

fn tests(sets: &[&str]) -> Result<Vec<(Test, Vec<Segment>)>, String> {
    let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
    let scenario = Scenario::parse(FILE, &sets)?;
    scenario
        .phases
        .iter()
        .map(|phase| {
            let test = Test::of(&scenario, phase)?;
            let segments = test.segments(phase, &scenario);
            Ok((test, segments))
        })
        .collect()
}

#[test]
fn phases_become_segments_at_their_scale() {
    let all = tests(&["scale=0.1"]).unwrap();
    let [(open, parts), (cps, cycle), (qps, requests)] = &all[..] else { panic!() };
    let names: Vec<&str> = parts.iter().map(|segment| segment.name.as_str()).collect();
    assert_eq!(names, ["c-open", "c-hold", "c-probe"]);
    assert_eq!(
        (open.connections, open.rate(), cps.rate(), qps.connections),
        (500, Some(100.0), Some(300.0), 5)
    );
    assert!(matches!(parts[0].loads[0], Load::Reopen { then: AfterReopen::Stay(_), class: 0, .. }));
    assert!(matches!(parts[2].loads[0], Load::Sample { every: 100, .. }));
    assert!(matches!(cycle[0].loads[0], Load::Reopen { then: AfterReopen::Close, close: Close::Fin, .. }));
    assert!(matches!(requests[0].loads[0], Load::Open { rate: 100.0, .. }));
    assert!(open.connect().by_load && !qps.connect().by_load);
    assert_eq!(open.connect().keep_alive, Some(Duration::from_secs(30)));
    assert_eq!((cps.needs(true).closed_per_s, open.needs(true).closed_per_s), (300.0, 0.0));
}

#[test]
fn options_change_what_is_done() {
    let all = tests(&[
        "phase.s.close=rst",
        "phase.c.application=none",
        "phase.c.keep_alive=none",
        "phase.c.hold=5s",
        "dataset.connect_timeout=2s",
    ])
    .unwrap();
    let [(open, parts), (cps, _), _] = &all[..] else { panic!() };
    assert_eq!((parts.len(), parts[1].duration.as_secs()), (2, 5), "nothing to ask");
    assert_eq!((open.connect().keep_alive, open.connect().timeout.as_secs()), (None, 2));
    assert_eq!((cps.needs(true).closed_per_s, cps.close()), (0.0, Close::Reset));
    let all = tests(&["phase.s.close=after-request", "phase.c.keep_alive=application"]).unwrap();
    assert!(matches!(all[1].1[0].loads[0], Load::Reopen { then: AfterReopen::Answer, .. }));
    let scenario = Scenario::parse(FILE, &[]).unwrap();
    assert_eq!(all[0].0.config(&scenario, "h").ping, Some(Duration::from_secs(30)));
}

#[test]
fn a_closed_loop_has_no_rate() {
    let connects = ["phase.s.arrival=closed", "phase.s.close=after-request"];
    let all = tests(&[&connects[..], &["phase.q.arrival=closed", "phase.q.pause=2ms"]].concat()).unwrap();
    let [_, (cps, cycle), (qps, requests)] = &all[..] else { panic!() };
    assert_eq!((cps.rate(), qps.rate()), (None, None));
    assert!(matches!(
        cycle[0].loads[0],
        Load::Reopen { when: ReopenTrigger::Again, then: AfterReopen::Answer, .. }
    ));
    let pause = Duration::from_millis(2);
    assert_eq!(requests[0].loads[0], Load::Closed { window: 1, pause });
    assert!(cps.needs(true).closed_per_s.is_infinite(), "as many ports as TIME_WAIT may hold");
    let error = tests(&["phase.q.arrival=closed", "phase.q.window=2"]).unwrap_err();
    assert!(error.contains("one thing at a time"), "{error}");
}

#[test]
fn an_application_is_missed_where_something_is_asked() {
    let sets = ["dataset.application=none", "phase.c.keep_alive=application"];
    let all = tests(&sets).unwrap();
    let missed: Vec<bool> = all.iter().map(|(test, _)| test.check_application().is_err()).collect();
    assert_eq!(missed, [true, false, true]);
    let all = tests(&["dataset.application=none", "phase.s.close=after-request"]).unwrap();
    let missed: Vec<bool> = all.iter().map(|(test, _)| test.check_application().is_err()).collect();
    assert_eq!(missed, [false, true, true]);
    assert!(tests(&[]).unwrap().iter().all(|(test, _)| test.check_application().is_ok()));
}

#[test]
fn what_is_wrong_is_said() {
    for (set, expected) in [
        ("phase.c.duration=5s", "follows from connections, rate and `hold`"),
        ("phase.c.arrival=closed", "closed for cps and qps"),
        ("phase.s.arrival=steps", "`rate_to`"),
        ("phase.s.pause=1s", "not for connects"),
        ("phase.s.arrival=closed", "nothing to wait for"),
        ("phase.c.timer_us=1000", "not for connects"),
        ("phase.c.sample=0", "above zero"),
        ("phase.s.close=reset", "unknown variant `reset`"),
        ("phase.c.keep_alvie=tcp", "did you mean `keep_alive`?"),
        ("phase.q.path=x", "begins with `/`"),
        ("operation.request.name=ask", "no [[operation]] called `request`"),
    ] {
        let error = tests(&[set]).unwrap_err();
        assert!(error.contains(expected), "{set}: {error}");
    }
}
