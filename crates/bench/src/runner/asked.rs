//! What a result says was asked for: nothing that is secret, and no place that moves.

use std::path::Path;

use super::plan::without_password;
use crate::scenario::Scenario;

/// A command line without passwords, and without the place of the result, which moves.
pub(super) fn command_line(words: &[String]) -> Vec<String> {
    let mut before = String::new();
    let word = |word: &String| {
        let option = std::mem::replace(&mut before, word.clone());
        let last =
            |path: &str| Path::new(path).file_name().unwrap_or_default().to_string_lossy().into_owned();
        match word.split_once('=') {
            _ if option == "--password" => "...".to_owned(),
            _ if option == "--out" => last(word),
            Some(("--out", path)) => format!("--out={}", last(path)),
            Some((name @ ("--password" | "target.password" | "--set=target.password"), _)) => {
                format!("{name}=...")
            }
            _ if word.contains("://") => without_password(word),
            _ => word.clone(),
        }
    };
    words.iter().map(word).collect()
}

/// What a result says was asked for.
pub(super) fn configuration(scenario: &Scenario) -> serde_json::Value {
    serde_json::to_value(redacted(scenario)).unwrap_or_default()
}

/// The effective file without passwords.
fn redacted(scenario: &Scenario) -> toml::Table {
    let mut table = scenario.effective.clone();
    if let Some(toml::Value::Table(target)) = table.get_mut("target") {
        target.remove("password");
        if let Some(toml::Value::String(url)) = target.get_mut("url") {
            *url = without_password(url);
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_password_of_a_command_line_is_kept() {
        let words = "bench run thingsboard --password one --target mqtt://me:two@host:1 --set target.password=three --password=four \
                     --out x/a@b --rate 5 --out=x/y";
        let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
        let kept = command_line(&words).join(" ");
        assert_eq!(
            kept,
            "bench run thingsboard --password ... --target mqtt://host:1 --set target.password=... --password=... --out a@b --rate 5 --out=y"
        );
    }
}
