//! The scenarios of this repository and of its pages, with their drivers.

#![allow(clippy::unwrap_used)] // A test helper that fails fails its test.

use load::scenario::{ALIASES, BUILTIN, Scenario};
use targets::driver_of;

#[test]
fn every_builtin_scenario_and_every_alias_has_a_driver() {
    let names = BUILTIN.iter().map(|builtin| builtin.name).chain(ALIASES.iter().map(|alias| alias.name));
    for name in names {
        let scenario = Scenario::load(name, &[]).unwrap();
        driver_of(&scenario).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}

#[test]
fn the_example_of_the_page_is_a_scenario_and_so_are_its_mixes() {
    let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/bench/scenarios.md");
    let page = std::fs::read_to_string(page).unwrap();
    let blocks: Vec<&str> =
        page.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    let [example, mixes] = blocks[..] else { panic!("{blocks:?}") };
    let before_phases = example.split("[[phase]]").next().unwrap();
    for text in [example.to_owned(), format!("{before_phases}{mixes}")] {
        let scenario = Scenario::parse(&text, &[]).unwrap();
        driver_of(&scenario).unwrap();
    }
}

#[test]
fn what_the_pages_say_can_be_set_is_understood() {
    for (name, set) in [
        ("gemini-hash", "dataset.size=[20, 80]"),
        ("gemini-hash", "dataset.content={compressed=0.4}"),
        ("gemini-str1250", "dataset.size=[500, 2000]"),
        ("gemini-mix", "phase.load.mix.hash.size=[20, 80]"),
        ("gemini-mix", "phase.load.mix.long.size=[500, 2000]"),
        ("gemini-mix", "phase.run.mix.hash.connections=100"),
        ("http-steps", "phase.climb.arrival=steps"),
        ("http-qps", "operation.get.request=GET /health"),
        ("http-qps", "operation.get.status=204"),
        ("http-qps", "operation.get.status=[200, 404]"),
        ("mqtt-10k", "phase.run.busy_poll_us=100"),
        ("slb-s1", "phase.cps.busy_poll_us=100"),
        ("thingsboard", "dataset.payload=article"),
        ("host-cpu", "phase.integer-1.connections=processors"),
    ] {
        let scenario = Scenario::load(name, &[set.to_owned()]).unwrap();
        driver_of(&scenario).unwrap_or_else(|error| panic!("{name} {set}: {error}"));
    }
}

#[test]
fn what_the_commands_of_the_pages_set_is_understood() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let pages = std::fs::read_dir(root.join("docs/bench")).unwrap().map(|entry| entry.unwrap().path());
    let pages = pages.filter(|path| path.extension().is_some_and(|ending| ending == "md"));
    let (mut checked, mut faults) = (0, Vec::new());
    for page in pages.chain([root.join("docs/tune/README.md"), root.join("scenarios/README.md")]) {
        let text = std::fs::read_to_string(&page).unwrap().replace("\\\n", " ");
        let commands = text.split(['\n', '`']).filter(|line| line.contains("tacho bench run "));
        for words in commands.map(words) {
            let is_known = |word: &&String| {
                BUILTIN.iter().any(|builtin| builtin.name == **word)
                    || ALIASES.iter().any(|alias| alias.name == **word)
            };
            let Some(name) = words.iter().find(is_known) else { continue };
            // Placeholders of the pages.
            let filled =
                |url: &str| url.replace("PORT", "8080").replace("$port", "6379").replace("INDEX", "index");
            let set = |pair: &[String]| match &*pair[0] {
                "--set" => Some(pair[1].clone()),
                "--target" => Some(format!("target.url={}", filled(&pair[1]))),
                _ => None,
            };
            let sets: Vec<String> = words.windows(2).filter_map(set).collect();
            let place = format!("{}: {name} {sets:?}", page.display());
            let understood = Scenario::load(name, &sets)
                .map_err(|error| error.to_string())
                .and_then(|scenario| driver_of(&scenario).map(drop).map_err(|error| error.to_string()));
            faults.extend(understood.err().map(|error| format!("{place}: {error}")));
            checked += 1;
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(checked >= 50, "{checked}");
}

/// The words of a command line. Single quotes keep blanks.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut is_quoted) = (Vec::new(), String::new(), false);
    for letter in line.chars() {
        match letter {
            '\'' => is_quoted = !is_quoted,
            ' ' if !is_quoted => words.push(std::mem::take(&mut word)),
            _ => word.push(letter),
        }
    }
    words.push(word);
    words.retain(|word| !word.is_empty());
    words
}

#[test]
fn data_of_a_request_has_a_key_a_length_and_compresses_as_printable_text_can() {
    let refused = |path: &str, sets: &[&str]| {
        let operation = format!("operation=[{{ name = 'get', request = 'PUT {path}', body = '__data__' }}]");
        let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).chain([operation]).collect();
        driver_of(&Scenario::load("http-qps", &sets).unwrap()).err().unwrap_or_default()
    };
    let good = ["dataset.data_bytes=9", "dataset.data_compressed=0.2", "dataset.data_seed=7"];
    assert_eq!(refused("/__key__", &good), "");
    for (path, sets, expected) in [
        ("/__key__", &[][..], "`__data__` needs `data_bytes`"),
        ("/", &["dataset.data_bytes=9"], "the path needs `__key__`"),
        ("/__key__", &["dataset.data_bytes=1048577"], "use at most 1048576"),
        ("/__key__", &["dataset.data_bytes=9", "dataset.data_compressed=0.8"], "it is a share, 0 to 0.75"),
        ("/__key__", &["dataset.data_bytes=9", "phase.closed.data_bytes=8"], "belongs into [dataset]"),
        ("/__key__", &["dataset.data_bytes=1000000", "phase.closed.connections=2000"], "bytes of memory"),
    ] {
        let error = refused(path, sets);
        assert!(error.contains(expected), "{path} {sets:?}: {error}");
    }
}

#[test]
fn a_key_that_nobody_knows_is_refused_in_every_table_of_every_driver() {
    for (name, set, expected) in [
        ("thingsboard", "target.hptt=x", "[target]"),
        ("thingsboard", "dataset.payloud=meter", "did you mean `payload`?"),
        ("thingsboard", "operation.publish.wieght=2", "did you mean `weight`?"),
        ("thingsboard", "phase.run.conections=2", "did you mean `connections`?"),
        ("gemini-mix", "phase.run.mix.hash.szie=2", "did you mean `size`?"),
        ("gemini-str32", "operation.get.comand=GET", "did you mean `command`?"),
        ("http-qps", "target.port=1", "[target]"),
        ("http-qps", "operation.get.metod=GET", "operation `get`"),
        ("slb-s1", "operation.connect.path=/", "operation `connect`"),
        ("slb-s1", "phase.cps.clsoe=rst", "did you mean `close`?"),
        ("sysbench-oltp-insert", "dataset.tabels=3", "did you mean `tables`?"),
        ("sysbench-oltp-insert", "phase.load.acton=load", "did you mean `action`?"),
        ("sysbench-oltp-insert", "phase.run.mix=[{ name = 'a' }, { name = 'b', acton = 1 }]", "`acton`"),
        ("host-cpu", "dataset.diretory=x", "did you mean `directory`?"),
        ("host-cpu", "operation.float.kernle=float", "operation `float`"),
        ("host-disk", "phase.write.durration=3", "did you mean `duration`?"),
        ("ledger", "dataset.devices=3", "[dataset]"),
        ("ledger", "phase.run.kill=3", "did you mean `kills`?"),
        ("reads", "phase.rest.conections=3", "did you mean `connections`?"),
    ] {
        let scenario = Scenario::load(name, &[set.to_owned()]).unwrap();
        let error = driver_of(&scenario).err().unwrap_or_default();
        assert!(error.contains(expected), "{name} {set}: {error}");
    }
}

#[test]
fn a_suggestion_is_of_the_same_table() {
    for builtin in BUILTIN {
        let refused = |set: String| {
            let scenario = match Scenario::load(builtin.name, &[set]) {
                Ok(scenario) => scenario,
                Err(error) => return error.to_string(),
            };
            driver_of(&scenario).err().unwrap_or_default()
        };
        let scenario = builtin.scenario().unwrap();
        for phase in &scenario.phases {
            for (wrong, meant) in [
                ("rte", "rate"),
                ("duratoin", "duration"),
                ("arival", "arrival"),
                ("wamup", "warmup"),
                ("widow", "window"),
            ] {
                let error = refused(format!("phase.{}.{wrong}=5", phase.name));
                assert!(error.contains(&format!("did you mean `{meant}`?")), "{}: {error}", builtin.name);
            }
        }
        for operation in &scenario.operations {
            let error = refused(format!("operation.{}.wieght=5", operation.name));
            assert!(error.contains("did you mean `weight`?"), "{}: {error}", builtin.name);
        }
        let error = refused("dataset.rte=5".to_owned());
        assert!(
            !error.is_empty() && !error.contains("mean `rate`"),
            "a data set has no rate: {}: {error}",
            builtin.name
        );
        let error = refused("target.ulr=x".to_owned());
        assert!(error.contains("did you mean `url`?"), "{}: {error}", builtin.name);
        let error = refused("gates.error_share=1".to_owned());
        assert!(error.contains("did you mean `error_share_max`?"), "{}: {error}", builtin.name);
    }
}

#[test]
fn no_number_of_a_scenario_makes_a_driver_panic() {
    fn numbers(path: &str, value: &toml::Value, found: &mut Vec<String>) {
        match value {
            toml::Value::Integer(_) | toml::Value::Float(_) => found.push(path.to_owned()),
            toml::Value::Table(table) => {
                table.iter().for_each(|(key, value)| numbers(&format!("{path}.{key}"), value, found))
            }
            toml::Value::Array(list) => {
                for (index, value) in list.iter().enumerate() {
                    let name = value.get("name").and_then(toml::Value::as_str);
                    let name = name.map_or_else(|| index.to_string(), str::to_owned);
                    numbers(&format!("{path}.{name}"), value, found);
                }
            }
            _ => {}
        }
    }
    for builtin in BUILTIN {
        let mut found = Vec::new();
        numbers("", &toml::Value::Table(builtin.scenario().unwrap().effective), &mut found);
        let more = [
            "scale",
            "phase.run.rate",
            "phase.run.rate_to",
            "gates.arrival_max",
            "dataset.exponent",
            "dataset.deviation",
        ];
        let paths = found.iter().map(|path| path.trim_start_matches('.')).chain(more);
        for path in paths {
            for odd in ["nan", "inf", "-inf", "-1", "0", "1e300", "9223372036854775807", "'1e30s'", "'nan'"] {
                if let Ok(scenario) = Scenario::load(builtin.name, &[format!("{path}={odd}")]) {
                    let _ = driver_of(&scenario);
                }
            }
        }
    }
}
