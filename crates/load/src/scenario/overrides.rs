//! `--set path.to.key=value`: changes a scenario before it is parsed. A path names members of lists by their `name`.

use toml::{Table, Value};

use super::phase::PHASE_KEYS;
use super::typed::nearest;

/// The tables of a file.
const TABLES: [&str; 7] = ["scenario", "target", "dataset", "operation", "phase", "slo", "gates"];
/// Short forms for keys of `[scenario]`.
const SHORT: [&str; 2] = ["seed", "scale"];

pub(super) fn apply(file: &mut Table, set: &str) -> Result<(), String> {
    let Some((path, value)) = set.split_once('=') else {
        return Err(format!("--set {set}: write path.to.key=value"));
    };
    let value = parse(value.trim());
    let mut words: Vec<&str> = path.trim().split('.').collect();
    // The most frequently changed keys are those of [scenario].
    if let [word] = words[..]
        && SHORT.contains(&word)
    {
        words = vec!["scenario", word];
    }
    if !TABLES.contains(&words[0]) {
        return Err(format!("--set {set}: {}", no_table(file, &words)));
    }
    let Some((key, tables)) = words.split_last() else { return Err(format!("--set {set}: no path")) };
    let mut place = file;
    let mut rest = tables;
    while let Some((word, more)) = rest.split_first() {
        rest = more;
        let known: Vec<String> = place.keys().cloned().collect();
        place = match place.entry(*word).or_insert_with(|| Value::Table(Table::new())) {
            Value::Table(table) => table,
            Value::Array(list) => {
                let Some((name, more)) = rest.split_first() else {
                    return Err(format!("--set {set}: `{word}` is a list; say which one: {word}.NAME.{key}"));
                };
                rest = more;
                member(list, name).map_err(|error| format!("--set {set}: {error}"))?
            }
            _ => {
                return Err(format!("--set {set}: `{word}` has no parts (known here: {})", known.join(", ")));
            }
        };
    }
    place.insert((*key).to_owned(), value);
    Ok(())
}

/// The error text for a path that starts with no table of a file.
fn no_table(file: &Table, words: &[&str]) -> String {
    let names = |list: &str| -> Vec<&str> {
        let members = file.get(list).and_then(Value::as_array).into_iter().flatten();
        members.filter_map(|member| member.get("name")?.as_str()).collect()
    };
    if let Some(list) = ["phase", "operation"].into_iter().find(|list| names(list).contains(&words[0])) {
        return format!("`{}` is the name of a member of {list}: {list}.{}", words[0], words.join("."));
    }
    if words.len() == 1 && PHASE_KEYS.contains(&words[0]) {
        return format!(
            "`{}` is a key of a phase: phase.NAME.{} (phases: {})",
            words[0],
            words[0],
            names("phase").join(", ")
        );
    }
    let meant = nearest(words[0], TABLES.into_iter().chain(SHORT));
    let meant = meant.map(|meant| format!("; did you mean `{meant}`?")).unwrap_or_default();
    format!("there is no table `{}`, there are {}{meant}", words[0], TABLES.join(", "))
}

fn member<'a>(list: &'a mut [Value], name: &str) -> Result<&'a mut Table, String> {
    let names: Vec<String> = list
        .iter()
        .map(|value| value.get("name").and_then(Value::as_str).unwrap_or_default().to_owned())
        .collect();
    let index = name.parse().ok().filter(|index| *index < list.len());
    match names.iter().position(|known| known == name).or(index).map(|index| &mut list[index]) {
        Some(Value::Table(table)) => Ok(table),
        _ => {
            let meant = nearest(name, names.iter().map(String::as_str));
            let meant = meant.map(|meant| format!("; did you mean `{meant}`?")).unwrap_or_default();
            Err(format!("there is none called `{name}`, there are {}{meant}", names.join(", ")))
        }
    }
}

/// Parses a TOML value. Anything else is text.
fn parse(text: &str) -> Value {
    toml::from_str::<Table>(&format!("value = {text}"))
        .ok()
        .and_then(|mut table| table.remove("value"))
        .unwrap_or_else(|| Value::String(text.to_owned()))
}
