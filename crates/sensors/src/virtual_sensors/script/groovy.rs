//! Words of Groovy, in which GSN has its scripts, and what to write instead.

const WORDS: &[(&str, &str)] = &[
    ("def", "`def x = 1` is `let x = 1;` in Rhai"),
    ("null", "`null` is `()` in Rhai"),
    ("isdef", "`n = isdef('n') ? n + 1 : 0` is `state.n = (state.n ?? -1) + 1;` in Rhai"),
    ("binding", "what a script keeps is in the map `state`"),
    ("Math", "`Math.sqrt(x)` is `x.sqrt()` in Rhai"),
    ("println", "a script prints nothing; give the output a field"),
    ("print", "a script prints nothing; give the output a field"),
    ("sendEmail", "a script sends nothing; use the class Email over this sensor, or alarm rules"),
    ("sendSMS", "a script sends nothing; use the class Webhook over this sensor, or alarm rules"),
    ("new", "a script has numbers, texts, arrays `[1, 2]` and maps `#{a: 1}`, and no objects of Java"),
    ("import", "a script reads no other files and has no classes of Java"),
];

/// Where to read more.
const PAGE: &str = "docs/sensor-classes.md has the words of Groovy with those of Rhai";

/// What to write instead of what a fault at a line of a script shows.
pub(super) fn hint(fault: &str, line: &str) -> String {
    let word = line.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).find_map(instead);
    let instead = match word {
        Some(instead) => instead,
        None if fault.contains("'?'") => "`a ? b : c` is `if a { b } else { c }` in Rhai",
        None if line.contains('\'') => "a text is in double quotes in Rhai",
        None if fault.contains("';'") => "a statement ends with `;` in Rhai",
        None => return PAGE.to_owned(),
    };
    format!("{instead}; {PAGE}")
}

/// What to write instead of a word of Groovy.
pub(super) fn instead(word: &str) -> Option<&'static str> {
    WORDS.iter().find(|(known, _)| *known == word).map(|(_, instead)| *instead)
}
