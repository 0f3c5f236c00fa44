//! Command lines and settings for results and messages, without passwords and without temporary paths.

use std::path::Path;

use clients::target_url::without_password;
use clients::tls::{TlsOptions, Trust};
use load::scenario::Scenario;

/// A command line without passwords. Of the result's directory only the last name stays.
pub fn command_line(words: &[String]) -> Vec<String> {
    let mut before = String::new();
    let word = |word: &String| {
        let option = std::mem::replace(&mut before, word.clone());
        let last =
            |path: &str| Path::new(path).file_name().unwrap_or_default().to_string_lossy().into_owned();
        match (option.as_str(), word.split_once('=')) {
            ("--password" | "--token", _) => "...".to_owned(),
            ("--out", _) => last(word),
            ("--target", _) => without_password(word),
            (_, Some(("--out", path))) => format!("--out={}", last(path)),
            (_, Some((secret @ ("--password" | "--token"), _))) => format!("{secret}=..."),
            (_, Some(("--target", url))) => format!("--target={}", without_password(url)),
            (_, Some((option @ ("--set" | "--a" | "--b"), set))) => format!("{option}={}", setting(set)),
            _ => setting(word),
        }
    };
    words.iter().map(word).collect()
}

/// The shell command that runs `phases` of a scenario with all its settings. `[target]` may hold a password, so of it
/// the command contains only `target`, and not even that if the scenario itself names the server.
pub(crate) fn load_command(scenario: &Scenario, phases: &[&str], target: &str) -> String {
    let origin = &scenario.origin;
    let mut words = vec![shell_word(&origin.name)];
    words.extend(phases.iter().map(|phase| format!("--phase {}", shell_word(phase))));
    let mut has_target = false;
    for set in &origin.sets {
        let key = set.split_once('=').map_or(set.as_str(), |(key, _)| key.trim());
        if matches!(key, "target" | "target.url") {
            has_target = true;
        } else if !key.starts_with("target.") && !key.contains("password") {
            let set = without_password_if_url(set);
            words.push(format!("--set {}", shell_word(&set)));
        }
    }
    if has_target {
        words.push(format!("--target {}", shell_word(target)));
    }
    format!("tacho bench run {}", words.join(" "))
}

/// The beginning of a finding about data that stays on the target.
pub const LEFT_BEHIND: &str = "The run leaves ";

/// The finding about data that a run leaves on the target, with the command that removes it.
pub(crate) fn left_behind(what: &str, command: &str) -> String {
    format!("{LEFT_BEHIND}{what} on the target. To remove them: {command}")
}

/// The options of curl and redis-cli for a server with TLS, with a blank before each.
pub(crate) fn tls_flags(options: Option<&TlsOptions>) -> String {
    let Some(options) = options else { return String::new() };
    let file = |option: &str, file: &Path| format!(" {option} {}", shell_word(&file.display().to_string()));
    let mut flags = match &options.trust {
        Trust::Everything => " --insecure".to_owned(),
        Trust::File(authority) | Trust::AnyName(Some(authority)) => file("--cacert", authority),
        Trust::System | Trust::AnyName(None) => String::new(),
    };
    if let Some(identity) = &options.identity {
        flags += &file("--cert", &identity.certificate);
        flags += &file("--key", &identity.key);
    }
    flags
}

/// Quotes a word if a shell would interpret it.
pub fn shell_word(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=,@%+".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// A setting, `KEY=VALUE`, without its password.
pub fn setting(set: &str) -> String {
    let Some((key, value)) = set.split_once('=') else { return without_password_if_url(set) };
    match key.trim() {
        // A whole table may contain a password anywhere.
        "target" | "target.password" | "target.token" => format!("{key}=..."),
        "target.url" | "target.http" => format!("{key}={}", without_password(value)),
        _ => without_password_if_url(set),
    }
}

fn without_password_if_url(word: &str) -> String {
    if word.contains("://") { without_password(word) } else { word.to_owned() }
}

/// The effective scenario for the result.
pub fn configuration(scenario: &Scenario) -> serde_json::Value {
    serde_json::to_value(redacted(scenario)).unwrap_or_default()
}

/// The effective scenario without passwords.
fn redacted(scenario: &Scenario) -> toml::Table {
    let mut table = scenario.effective.clone();
    if let Some(toml::Value::Table(target)) = table.get_mut("target") {
        target.remove("password");
        target.remove("token");
        for key in ["url", "http"] {
            if let Some(toml::Value::String(url)) = target.get_mut(key) {
                *url = without_password(url);
            }
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_password_of_a_command_line_is_kept() {
        let words = "bench run thingsboard --password one --target mqtt://me:two@host:1 --set target.password=three --password=four --token five \
                     --out x/a@b --rate 5 --out=x/y";
        let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
        let kept = command_line(&words).join(" ");
        assert_eq!(
            kept,
            "bench run thingsboard --password ... --target mqtt://host:1 --set target.password=... --password=... --token ... --out a@b --rate 5 --out=y"
        );
    }

    #[test]
    fn the_command_that_loads_has_every_set_and_no_password() {
        let sets = [
            "dataset.tables=4",
            "target.url=mysql://me:s3cret@host/db",
            "dataset.distribution={ type = \"it's\" }",
            "target.password=s3cret",
            "scale=0.5",
        ];
        let sets = sets.map(str::to_owned);
        let mut scenario = Scenario::load("sysbench-oltp-insert", &sets).unwrap();
        "my scenarios/one.toml".clone_into(&mut scenario.origin.name);
        assert_eq!(
            load_command(&scenario, &["load", "index"], "mysql://me@host/db"),
            r#"tacho bench run 'my scenarios/one.toml' --phase load --phase index --set dataset.tables=4 --set 'dataset.distribution={ type = "it'\''s" }' --set scale=0.5 --target mysql://me@host/db"#
        );
        let scenario = Scenario::load("gemini-hash", &[]).unwrap();
        let command = load_command(&scenario, &["load"], "redis://host");
        assert_eq!(command, "tacho bench run gemini-hash --phase load", "the scenario says where");
    }

    #[test]
    fn words_are_quoted_for_a_shell() {
        for word in ["", "a b", "it's", "$(x)", "~/a", "a;b", "*.toml", "plain-1.toml", "\"x\"", "a\\b"] {
            let script = format!("printf %s {}", shell_word(word));
            let out = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
            assert_eq!(String::from_utf8(out.stdout).unwrap(), word);
        }
    }

    #[test]
    fn no_password_of_a_setting_is_kept_however_it_is_written() {
        for (set, kept) in [
            ("target.password=three", "target.password=..."),
            ("target.token=four", "target.token=..."),
            (" target.password = three", " target.password =..."),
            ("target.url=redis://me:two@host:1", "target.url=redis://host:1"),
            ("target.url=\"redis://me:two@host:1\"", "target.url=\"redis://host:1\""),
            ("target.url=me:two@host:1", "target.url=host:1"),
            ("target.http=http://me:two@host:1", "target.http=http://host:1"),
            ("target={url = 'redis://host', password = 'three'}", "target=..."),
            ("phase.run.rate=5", "phase.run.rate=5"),
        ] {
            assert_eq!(setting(set), kept);
            let words = ["--a".to_owned(), set.to_owned(), format!("--b={set}"), format!("--set={set}")];
            assert_eq!(
                command_line(&words),
                ["--a".to_owned(), kept.to_owned(), format!("--b={kept}"), format!("--set={kept}")]
            );
        }
        let bare = ["--target", "me:two@host:1", "--target=me:two@host:1"].map(str::to_owned);
        assert_eq!(command_line(&bare), ["--target", "host:1", "--target=host:1"]);
    }
}
