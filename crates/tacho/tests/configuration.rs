//! Errors of the process about wrong settings. Unit tests cover the checks of each setting.

use crate::tacho::{run, run_with, text};

#[test]
fn an_unknown_key_fails_with_file_line_and_suggestion() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("my.toml");
    std::fs::write(&file, "[mqtt]\nlistn = '127.0.0.1:0'\n").unwrap();
    let error = run(&["serve", "--config", text(&file), "--data", text(directory.path())]).failed(2);
    let expected =
        format!("tacho: error: {}:2: unknown key \"mqtt.listn\"; did you mean \"listen\"?\n", file.display());
    assert_eq!(error, expected);
}

#[test]
fn an_unknown_variable_fails_every_command() {
    let environment = [("TACHO_HTTP_LISTNE", "127.0.0.1:0")];
    for arguments in [&["serve"][..], &["device", "list"], &["config"]] {
        let error = run_with(arguments, &environment).failed(2);
        assert!(
            error.contains("TACHO_HTTP_LISTNE: unknown setting; did you mean \"TACHO_HTTP_LISTEN\"?"),
            "{error}"
        );
    }
}

#[test]
fn a_misspelt_log_filter_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let error = run_with(&["serve", "--data", text(directory.path())], &[("TACHO_LOG", "verbose")]).failed(2);
    assert!(error.contains("TACHO_LOG is \"verbose\"; a level (error, warn,"), "{error}");
}

#[test]
fn the_resolved_configuration_is_printed_as_a_file_that_can_be_used() {
    let directory = tempfile::tempdir().unwrap();
    let printed = run_with(&["config", "--data", "/x"], &[("TACHO_MQTT_WORKERS", "3")]).ok();
    let settings = |printed: &str| {
        let (memory, settings) = printed.split_once('\n').unwrap();
        assert!(memory.starts_with("# memory: "), "{memory}");
        settings.to_owned()
    };
    let first = settings(&printed);
    assert!(first.starts_with("data = \"/x\"\n") && first.contains("\nworkers = 3\n"), "{first}");
    let file = directory.path().join("printed.toml");
    std::fs::write(&file, &printed).unwrap();
    assert_eq!(settings(&run(&["config", "--config", text(&file)]).ok()), first);
}

#[test]
fn a_wrong_command_line_has_another_exit_code_than_a_failure() {
    run(&["device", "add"]).failed(2);
    run(&["device", "add", "a", "--count", "3", "--prefix", "b"]).failed(2);
    run(&["device", "list", "--data", "/nowhere/at/all"]).failed(1);
}
