//! `tune::chain::run` over finished searches and a target that does not answer.

use std::fs;
use std::net::TcpListener;
use std::path::Path;

use bench::Context;
use tune::chain::{Bottleneck, Chain, FILE, Measured, run};

/// Writes a finished search. Returns its directory as TOML.
fn finished(home: &Path, name: &str, low: f64, high: f64) -> String {
    let directory = home.join(name);
    fs::create_dir(&directory).unwrap();
    let answer = serde_json::json!({
        "kind": "found", "rate_per_s": low, "interval": {"low": low, "high": high}, "safe_per_s": low, "trials": 12, "precise": true,
    });
    fs::write(directory.join("capacity.json"), serde_json::json!({ "answer": answer }).to_string()).unwrap();
    format!("bundle = '{}'", directory.display())
}

fn chain(home: &Path, layers: &[(&str, f64, &str)]) -> Chain {
    let file = home.join("chain.toml");
    let text = layers.iter().map(|(name, ratio, source)| {
        format!("[[layer]]\nname = '{name}'\noperations_per_message = {ratio:?}\n{source}\n")
    });
    fs::write(&file, text.collect::<String>()).unwrap();
    Chain::read(&file).unwrap()
}

#[test]
fn finished_searches_are_compared_in_messages() {
    let home = tempfile::tempdir().unwrap();
    let gateway = finished(home.path(), "gateway", 41_000.0, 43_000.0);
    let database = finished(home.path(), "database", 123.0, 131.0);
    let chain = chain(home.path(), &[("gateway", 1.0, &gateway), ("database", 0.01, &database)]);
    let (out, mut progress) = (home.path().join("out"), Vec::new());
    let report = run(&chain, &out, &Context::default(), &mut progress).unwrap();
    assert_eq!(report.narrowest, Bottleneck::Certain { layer: 1 });
    assert_eq!(report.sentence, "narrowest: database, 12,300 to 13,100 messages/s");
    assert_eq!(fs::read_to_string(out.join(FILE)).unwrap(), report.json() + "\n");
    let again = run(&chain, &out, &Context::default(), &mut progress).unwrap_err().to_string();
    assert!(again.contains("not empty"), "{again}");
}

#[test]
fn a_layer_that_fails_has_a_cause_and_the_others_are_measured() {
    let home = tempfile::tempdir().unwrap();
    // Nobody listens at the port of a listener that is closed again.
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let dead = format!(
        "scenario = 'http-qps'\nphase = 'keep-alive'\ntarget = 'http://{address}/'\nslo = 'p99<=1s'\nstep = '1s'\n\
         set = ['phase.keep-alive.connections=2', 'phase.keep-alive.warmup=0s']"
    );
    let database = finished(home.path(), "database", 123.0, 131.0);
    let absent = format!("bundle = '{}'", home.path().join("absent").display());
    let layers = [("balancer", 1.0, &*dead), ("gateway", 1.0, &*absent), ("database", 1.0, &*database)];
    let chain = chain(home.path(), &layers);
    let mut progress = Vec::new();
    let report = run(&chain, &home.path().join("out"), &Context::default(), &mut progress).unwrap();
    let cause = |layer: usize| match &report.layers[layer].measured {
        Measured::Failed { because } => because.clone(),
        Measured::Capacity { .. } => panic!("{report:?}"),
    };
    assert!(cause(0).contains(&address.to_string()), "{}", cause(0));
    assert!(cause(1).contains("capacity.json"), "{}", cause(1));
    assert!(matches!(report.layers[2].measured, Measured::Capacity { .. }), "{report:?}");
    assert_eq!(report.narrowest, Bottleneck::OneOf { layers: vec![0, 1, 2] });
    assert!(String::from_utf8(progress).unwrap().contains("layer balancer failed: "));
}
