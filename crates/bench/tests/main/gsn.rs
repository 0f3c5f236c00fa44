//! Scenarios of driver `gsn` against a scripted HTTP server: an honest one passes, and each kind of wrong answer makes the run invalid.

use std::io::{BufRead as _, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use bench::Context;
use bench::runner::{self, Options};
use load::result::Bundle;
use load::scenario::Scenario;
use parking_lot::Mutex;

/// The rows of each sensor.
const ROWS: u64 = 40;
const LIST: &str = "<?xml version=\"1.0\"?>\n<gsn name=\"scripted\">\n\
    <virtual-sensor name=\"meadow\" protected=\" \"><field name=\"time\" type=\"string\">x</field>\
    <field name=\"a\" type=\"double\">1</field><field name=\"b\" type=\"double\">2</field>\
    <field name=\"latitude\" category=\"predicate\">46</field></virtual-sensor>\n\
    <virtual-sensor name=\"street\"><field name=\"time\" type=\"string\"/>\
    <field name=\"a\" type=\"double\"/><field name=\"b\" type=\"double\"/></virtual-sensor>\n</gsn>\n";

/// How an answer is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lie {
    None,
    /// One row too few.
    Short,
    /// The newest row first.
    Backwards,
    /// The head of another sensor.
    OtherSensor,
    OtherColumns,
    /// The connection ends within the body.
    Cut,
    Refusal,
}

/// A server with two sensors. Returns its port and the paths that were asked for.
fn serve(lie: Lie) -> (u16, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&asked);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let seen = Arc::clone(&seen);
            thread::spawn(move || answer(stream, lie, &seen));
        }
    });
    (port, asked)
}

/// Answers one request and closes the connection. A client that has gone away does not matter.
fn answer(stream: TcpStream, lie: Lie, seen: &Mutex<Vec<String>>) {
    let mut lines = BufReader::new(&stream).lines().map_while(Result::ok);
    let Some(first) = lines.next() else { return };
    let closes =
        lines.take_while(|line| !line.is_empty()).any(|line| line.eq_ignore_ascii_case("connection: close"));
    let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
    seen.lock().push(format!("{path}{}", if closes { " close" } else { "" }));
    let (status, body) = match path.split('?').next() {
        Some("/gsn") => ("200 OK", LIST.to_owned()),
        Some("/multidata") if lie == Lie::Refusal => ("402 Payment Required", "no such sensor".to_owned()),
        Some("/multidata") => ("200 OK", csv(&path, lie)),
        _ => ("404 Not Found", String::new()),
    };
    let cut = if lie == Lie::Cut && path.starts_with("/multidata") { body.len() / 2 } else { body.len() };
    let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
    let _ = (&stream).write_all(head.as_bytes()).and_then(|()| (&stream).write_all(&body.as_bytes()[..cut]));
}

fn csv(path: &str, lie: Lie) -> String {
    let value = |name: &str| {
        let parameters = path.split(['?', '&']);
        parameters.filter_map(|one| one.split_once('=')).find(|(key, _)| *key == name).unwrap().1.to_owned()
    };
    let sensor = if lie == Lie::OtherSensor { "river".to_owned() } else { value("vs[0]") };
    let columns = if lie == Lie::OtherColumns { "time,a" } else { "time,a,b" };
    let mut rows = value("nb_value").parse::<u64>().unwrap().min(ROWS);
    if lie == Lie::Short && rows > 10 && sensor == "street" {
        rows -= 1;
    }
    let mut numbers: Vec<u64> = (ROWS - rows..ROWS).collect();
    if lie == Lie::Backwards {
        numbers.reverse();
    }
    let row = |number: u64| format!("27/11/2026 20:15:{:02} +0000,{number}.5,2\n", number + 10);
    let rows: String = numbers.into_iter().map(row).collect();
    format!("# vsname:{sensor}\n# query:select\n# {columns}\n# ,,\n{rows}")
}

fn run(lie: Lie, sets: &[&str]) -> (Bundle, Vec<String>) {
    let (port, asked) = serve(lie);
    let mut all = vec![
        format!("target.url=http://127.0.0.1:{port}"),
        "gates.lag_p99_us_max=10000000".to_owned(),
        "gates.generator_core_max=8".to_owned(),
        "gates.steal_share_max=1".to_owned(),
    ];
    all.extend(sets.iter().map(|set| (*set).to_owned()));
    let scenario = Scenario::load("eval-queries", &all).unwrap();
    let bundle = runner::run(
        &scenario,
        &Options { quiet: true, ..Options::default() },
        &Context::default(),
        &mut runner::alone,
    )
    .unwrap();
    let asked = asked.lock().clone();
    (bundle, asked)
}

#[test]
fn an_honest_server_is_measured_and_its_answers_are_counted() {
    let sets = [
        "phase.queries.queries=6",
        "phase.queries.size=25",
        "phase.queries.connections=2",
        "dataset.gsn_compat=true",
    ];
    let (bundle, asked) = run(Lie::None, &sets);
    assert!(bundle.result.validity().is_quotable(), "{bundle}");
    let phase = bundle.main_phase().unwrap();
    assert_eq!(phase.total.counts.completed, 6, "{bundle}");
    let questions: Vec<&String> = asked.iter().filter(|path| path.contains("/multidata")).collect();
    let of = |sensor: &str| {
        let question = format!(
            "/multidata?vs[0]={sensor}&field[0]=All&download_mode=inline&download_format=csv&nb=SPECIFIED&nb_value=25 close"
        );
        questions.iter().filter(|path| ***path == question).count()
    };
    // Three of each in the phase, and one of each to compare with.
    assert_eq!((of("meadow"), of("street"), questions.len()), (4, 4, 8), "{asked:?}");
    let text = bundle.to_string();
    assert!(text.contains("queries: 6 answers with 150 tuples in"), "{text}");
    let line = "\n| Tuples       : sum:150.000, min:25.000, max:25.000, mean:25.000, var:.000 [no unit]\n";
    assert!(text.contains(line) && text.contains("\n| Nb Queries   : 6\n"), "{text}");
    assert!(text.contains("\n| Fields       : sum:18.000, min:3.000, max:3.000"), "{text}");
}

#[test]
fn sensors_with_fewer_rows_and_random_sizes_are_compared_too() {
    let (bundle, _) = run(Lie::None, &["phase.queries.queries=4"]);
    assert!(
        bundle.result.validity().is_quotable() && bundle.to_string().contains("with 160 tuples"),
        "{bundle}"
    );
    let sets = ["phase.queries.size=100", "phase.queries.sizes=random", "dataset.sensors=['street']"];
    let (bundle, asked) = run(Lie::None, &sets);
    assert!(bundle.result.validity().is_quotable(), "{bundle}");
    assert!(asked.iter().all(|path| !path.contains("vs[0]=meadow")), "{asked:?}");
}

#[test]
fn a_wrong_answer_makes_the_run_invalid() {
    for (lie, expected) in [
        (Lie::Short, "questions whose answers have the right number of rows"),
        (Lie::Backwards, "is earlier than the row before"),
        (Lie::OtherSensor, "does not name the sensor"),
        (Lie::OtherColumns, "no line names the columns"),
        (Lie::Refusal, "status 402: no such sensor"),
        (Lie::Cut, "errors"),
    ] {
        let sets = match lie {
            Lie::Short => {
                vec!["phase.queries.sizes=random", "phase.queries.size=30", "phase.queries.queries=30"]
            }
            _ => vec!["phase.queries.queries=2", "phase.queries.size=20"],
        };
        let (bundle, _) = run(lie, &sets);
        let text = bundle.to_string();
        assert!(!bundle.result.validity().is_quotable(), "{lie:?}: {text}");
        assert!(text.contains(expected), "{lie:?}: {text}");
    }
}
