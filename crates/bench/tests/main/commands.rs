//! Tests of the commands that repeat a scenario, against a real Redis and a server with a known limit: they find an
//! answer and keep every run.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use bench::Context;
use bench::command::{BenchCommand, run};
use clap::Parser;
use load::result::Bundle;

use crate::redis::Server;

#[derive(Debug, Parser)]
struct Line {
    #[command(subcommand)]
    command: BenchCommand,
}

/// Few keys, few connections, and gates that a busy machine passes.
const SMALL: &str = "--scale 0.00002 --set phase.load.connections=10 --set phase.run.connections=4 --set phase.run.warmup=0s \
                     --set gates.lag_p99_us_max=60000000 --set gates.steal_share_max=1 --set gates.generator_core_max=100 \
                     --set gates.sent_share_min=0";

fn say(words: &str) -> Result<String, String> {
    let words: Vec<&str> = std::iter::once("bench").chain(words.split_whitespace()).collect();
    let line = Line::try_parse_from(&words).map_err(|error| error.to_string())?;
    let mut out = Vec::new();
    let command_line = words.into_iter().map(str::to_owned).collect();
    let context = Context { command_line, ..Context::default() };
    run(&line.command, &context, &mut out).map_err(|error| error.to_string())?;
    Ok(String::from_utf8(out).unwrap())
}

fn bundles(directory: &Path) -> Vec<Bundle> {
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.is_dir()).map(|path| Bundle::read(&path).unwrap()).collect()
}

#[test]
fn capacity_and_ab_keep_every_run_and_answer() {
    let server = Server::start(None);
    let home = tempfile::tempdir().unwrap();
    let (search, comparison) = (home.path().join("capacity"), home.path().join("ab"));
    let target = format!("--target redis://{} {SMALL}", server.address());
    // With so few connections most of the keys are not loaded, and reads of missing keys are not a load.
    let misses = say(&format!(
        "capacity gemini-str32 {target} --slo p50<=30s --start 400 --step 1s --out {}",
        search.display()
    ));
    assert!(misses.unwrap_err().contains("hit_share"), "a step that measures misses says nothing");
    std::fs::remove_dir_all(&search).unwrap();
    let target = target + " --set gates.hit_share_min=0";
    let text = say(&format!(
        "capacity gemini-str32 {target} --slo p50<=30s --start 400 --rate-max 800 --step 1s --steps-max 6 --out {}",
        search.display()
    ))
    .unwrap();
    let steps = bundles(&search);
    // 400, 600 and 800/s; a busy machine may need more steps.
    assert!((3..=6).contains(&steps.len()), "{text}");
    for step in &steps {
        let validity = step.result.validity();
        assert!(step.result.phases.len() == 1 && validity.is_quotable(), "{validity:?}");
    }
    let json: serde_json::Value =
        serde_json::from_slice(&std::fs::read(search.join("capacity.json")).unwrap()).unwrap();
    assert_eq!(json["steps"].as_array().unwrap().len(), steps.len());
    let sentences = json["sentences"].as_str().unwrap();
    assert!(sentences.contains("capacity") && text.contains(sentences), "{text}");

    let judged = |slo: &str| {
        let out = home.path().join(format!("run-{}", slo.len()));
        let line = format!(
            "run gemini-str32 {target} --phase run --set phase.run.duration=1s --set slo.response={slo}"
        );
        say(&format!("{line} --out {}", out.display())).unwrap()
    };
    let met = judged("p50<=30s");
    assert!(met.contains("run: the objective p50<=30000ms, errors<=0.1% is met ("), "{met}");
    let missed = judged("p50<=0.001us");
    assert!(missed.contains("is NOT met: p50 is ") && missed.contains("VALID"), "{missed}");

    let text = say(&format!(
        "ab gemini-str32 {target} --no-load --set phase.run.duration=300ms --set phase.run.rate=500 --b phase.run.connections=2 \
         --primary throughput --blocks-max 1 --out {}",
        comparison.display()
    ))
    .unwrap();
    assert_eq!(bundles(&comparison).len(), 8, "three blocks of A against A, one of A against B: {text}");
    assert!(
        text.contains("throughput") && text.contains("1 blocks") && text.contains("A against A differs by"),
        "{text}"
    );

    let slices = home.path().join("slices");
    let text = say(&format!(
        "ab gemini-str32 {target} --no-load --set phase.run.arrival=closed --slice-ms 20 --blocks-max 10 --out {}",
        slices.display()
    ))
    .unwrap();
    assert!(text.contains("take turns of 20 ms") && text.contains("10 blocks"), "{text}");
    let sides = bundles(&slices);
    assert_eq!(sides.len(), 2, "{text}");
    for side in &sides {
        let validity = side.result.validity();
        assert!(side.result.phases.len() == 1 && validity.is_quotable(), "{validity:?}");
    }
    let json: serde_json::Value =
        serde_json::from_slice(&std::fs::read(slices.join("ab.json")).unwrap()).unwrap();
    assert_eq!(
        json["runs"].as_array().unwrap().len(),
        2 * (50 + 10),
        "a second of A against A, and ten pairs"
    );
    let named = |run: &serde_json::Value| {
        run["values"].get("cpu").is_some() && run["values"].get("throughput").is_some()
    };
    assert!(json["runs"].as_array().unwrap().iter().all(named), "{text}");
    let steps_of = "--set phase.run.arrival=steps --set phase.run.steps=2 --set phase.run.rate_to=20000";
    let stepped = say(&format!(
        "ab gemini-str32 {target} --no-load {steps_of} --slice-ms 20 --out {}x",
        slices.display()
    ));
    assert!(stepped.unwrap_err().contains("compared by whole runs"), "each step has a result of its own");

    let page = home.path().join("page.html");
    let text = say(&format!("report {} --html {}", search.display(), page.display())).unwrap();
    assert_eq!(text.matches("VALID gemini-str32").count(), steps.len(), "{text}");
    let html = std::fs::read_to_string(&page).unwrap();
    assert!(
        html.len() > 50_000 && html.contains(sentences.lines().next().unwrap()),
        "the answer is on the page"
    );
    let text = say(&format!("report {} --html {}", comparison.display(), page.display())).unwrap();
    assert_eq!(text.matches("VALID gemini-str32").count(), 6, "the last six runs: {text}");
    assert!(std::fs::read_to_string(&page).unwrap().contains("A against A differs by"));
    let again = say(&format!("capacity gemini-str32 {target} --slo p50<=30s --out {}", search.display()));
    assert!(again.unwrap_err().contains("is not empty"), "an older answer is not written over");
}

/// A web server that answers one request at a time, each after a sleep, so that its rate is limited.
fn one_at_a_time(service: Duration) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let turn = Arc::new(Mutex::new(()));
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let turn = Arc::clone(&turn);
            thread::spawn(move || {
                let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
                while let Some(Ok(line)) = lines.next() {
                    if line.is_empty() {
                        let served = turn.lock().unwrap();
                        thread::sleep(service);
                        drop(served);
                        if (&stream).write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").is_err() {
                            break;
                        }
                    }
                }
            });
        }
    });
    address
}

#[test]
fn the_capacity_of_a_server_of_a_known_limit_is_not_above_it() {
    let address = one_at_a_time(Duration::from_millis(4));
    let home = tempfile::tempdir().unwrap();
    let out = home.path().join("capacity");
    let text = say(&format!(
        "capacity http-qps --phase keep-alive --target http://{address}/ --set phase.keep-alive.connections=50 \
         --set phase.keep-alive.warmup=0s --set gates.lag_p99_us_max=60000000 --set gates.steal_share_max=1 \
         --set gates.generator_core_max=100 --set gates.arrival_max=1000000 --slo p50<=50ms --start 100 --step 1s --steps-max 12 \
         --out {}",
        out.display()
    ))
    .unwrap();
    let json: serde_json::Value =
        serde_json::from_slice(&std::fs::read(out.join("capacity.json")).unwrap()).unwrap();
    let rate = json["answer"]["rate_per_s"].as_f64().unwrap();
    // At most 250 per second. A backlog may pass for a moment, and a busy machine sleeps for longer.
    assert!((30.0..350.0).contains(&rate), "{text}");
    let tried = json["steps"].as_array().unwrap().iter().filter_map(|step| step["rate_per_s"].as_f64());
    assert!(tried.fold(0.0, f64::max) > rate, "a rate was tried that it cannot have: {text}");
}

#[test]
fn a_load_on_a_schedule_is_cut_where_it_is_asked_for_and_latency_decides() {
    let server = Server::start(None);
    let home = tempfile::tempdir().unwrap();
    let out = home.path().join("ab");
    let text = say(&format!(
        "ab gemini-str32 --target redis://{} {SMALL} --set gates.hit_share_min=0 --set phase.run.rate=1000 --slice-ms 100 \
         --blocks-max 10 --out {}",
        server.address(),
        out.display()
    ))
    .unwrap();
    assert!(text.contains("take turns of 100 ms"), "{text}");
    let json: serde_json::Value =
        serde_json::from_slice(&std::fs::read(out.join("ab.json")).unwrap()).unwrap();
    assert_eq!(json["answer"]["metrics"][0]["metric"]["name"], "p99", "{text}");
    for side in bundles(&out) {
        let phase = &side.result.phases[0];
        let (counts, validity) = (&phase.total.counts, side.result.validity());
        assert!(validity.is_quotable() && counts.planned > 500, "{validity:?} {counts:?}");
        assert_eq!((counts.sent, counts.completed), (counts.planned, counts.planned), "{text}");
    }
}

#[test]
fn a_server_that_does_not_keep_up_is_not_compared_in_slices() {
    let address = one_at_a_time(Duration::from_millis(4));
    let home = tempfile::tempdir().unwrap();
    let error = say(&format!(
        "ab http-qps --phase keep-alive --target http://{address}/ --set phase.keep-alive.connections=50 \
         --set phase.keep-alive.rate=1000 --set phase.keep-alive.warmup=0s --set gates.lag_p99_us_max=60000000 --slice-ms 20 --out {}",
        home.path().join("ab").display()
    ))
    .unwrap_err();
    assert!(error.contains("side A") && error.contains("unanswered at their end"), "{error}");
    assert!(error.contains("--slice-ms 100") && error.contains("--slice-ms 0"), "what to do: {error}");
}

fn files(directory: &Path, found: &mut Vec<std::path::PathBuf>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files(&path, found) } else { found.push(path) }
    }
}

#[test]
fn no_password_of_a_side_is_shown_or_kept() {
    let server = Server::start(Some("s3cret"));
    let home = tempfile::tempdir().unwrap();
    let (out, page) = (home.path().join("ab"), home.path().join("page.html"));
    let url = format!("target.url=redis://:s3cret@{}", server.address());
    let text = say(&format!(
        "ab gemini-str32 {SMALL} --set {url} --a {url} --b={url} --set gates.hit_share_min=0 --slice-ms 5 --blocks-max 10 \
         --set phase.run.arrival=closed --out {}",
        out.display()
    ))
    .unwrap();
    assert!(!text.contains("s3cret") && text.contains(&format!("redis://{}", server.address())), "{text}");
    say(&format!("report {} --html {}", out.display(), page.display())).unwrap();
    let mut kept = vec![page];
    files(&out, &mut kept);
    assert!(kept.len() > 6, "{kept:?}");
    for file in kept {
        let text = String::from_utf8_lossy(&std::fs::read(&file).unwrap()).into_owned();
        assert!(!text.contains("s3cret"), "{}", file.display());
    }
}
