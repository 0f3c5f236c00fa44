//! How this program is called, so that the commands which it prints can be typed as they stand.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The name under which the commands of the documentation know the program.
pub(crate) const NAME: &str = "tacho";

/// What a shell takes for this program: its name where the shell finds this very file by it, else its path.
pub(crate) fn name() -> &'static str {
    static CALLED: OnceLock<String> = OnceLock::new();
    CALLED.get_or_init(|| called(std::env::current_exe().ok(), std::env::var_os("PATH").as_deref()))
}

fn called(program: Option<PathBuf>, path: Option<&OsStr>) -> String {
    let Some(program) = program else { return NAME.to_owned() };
    let found = path
        .and_then(|path| std::env::split_paths(path).map(|place| place.join(NAME)).find(|it| it.is_file()));
    let same = found.is_some_and(|found| match (found.canonicalize(), program.canonicalize()) {
        (Ok(found), Ok(program)) => found == program,
        _ => false,
    });
    match program.to_str() {
        Some(program) if !same => word(program),
        _ => NAME.to_owned(),
    }
}

/// A text in which commands stand in backquotes, with those of this program as they can be typed: for the data directory or
/// the server that this process was called for.
pub(crate) fn runnable(text: &str) -> Cow<'_, str> {
    with_name(text, name(), &Place::of(std::env::args().skip(1)))
}

/// What a command line says about where the data is, as words for the shell.
#[derive(Debug, Default)]
struct Place {
    /// `--data` and `--config`, which every command on data has.
    directory: Vec<String>,
    /// `--url` and `--user`, which commands have that may ask a server.
    server: Vec<String>,
}

impl Place {
    fn of(arguments: impl Iterator<Item = String>) -> Self {
        let (mut place, mut arguments) = (Self::default(), arguments);
        while let Some(argument) = arguments.next() {
            let (flag, value) = match argument.split_once('=') {
                Some((flag, value)) => (flag, Some(value.to_owned())),
                None => (argument.as_str(), None),
            };
            let to = match flag {
                "--data" | "--config" => &mut place.directory,
                "--url" | "--user" => &mut place.server,
                _ => continue,
            };
            if let Some(value) = value.or_else(|| arguments.next()) {
                to.extend([flag.to_owned(), word(&value)]);
            }
        }
        place
    }

    /// What a command of ours needs besides what it has.
    fn words_for(&self, command: &str) -> impl Iterator<Item = &String> {
        let has = |flag: &str| command.split(' ').any(|word| word == flag);
        let first = command.split(' ').next().unwrap_or_default();
        let on_data =
            ["check", "config", "device", "export", "import", "serve", "sql", "status", "table", "user"]
                .contains(&first);
        let asks = on_data && !["config", "serve"].contains(&first);
        let directory = self.directory.iter().filter(move |_| on_data && !has("--data"));
        directory.chain(self.server.iter().filter(move |_| asks && !has("--url")))
    }
}

fn with_name<'a>(text: &'a str, name: &str, place: &Place) -> Cow<'a, str> {
    if !text.contains(&format!("`{NAME} ")) {
        return Cow::Borrowed(text);
    }
    let mut parts: Vec<_> = text.split('`').map(Cow::Borrowed).collect();
    let last = parts.len() - 1;
    for part in &mut parts[1..last] {
        if let Some(command) = part.strip_prefix(&format!("{NAME} ")) {
            let more: String = place.words_for(command).map(|word| format!(" {word}")).collect();
            *part = Cow::Owned(format!("{name} {command}{more}"));
        }
    }
    Cow::Owned(parts.join("`"))
}

/// Examples as they stand below a help text, one a line after two blanks, with the program as it can be typed.
pub(crate) fn runnable_examples(text: &str) -> String {
    examples_with_name(text, name())
}

fn examples_with_name(text: &str, name: &str) -> String {
    let (written, typed) = (format!("| {NAME} "), format!("| {name} "));
    let line = |line: &str| match example(line) {
        Some((before, after)) => format!("{before}{name} {after}"),
        None => line.replace(&written, &typed),
    };
    with_name(&text.lines().map(line).collect::<Vec<_>>().join("\n"), name, &Place::default()).into_owned()
}

/// What stands before and after the program's name in a line that is an example: blanks and settings come before it.
fn example(line: &str) -> Option<(&str, &str)> {
    let (before, after) = line.strip_prefix("  ")?.split_once("tacho ")?;
    let settings = before.split_terminator(' ').all(|word| word.contains('='));
    settings.then(|| (&line[..2 + before.len()], after))
}

/// The command of a line that is an example, without what explains it behind a row of blanks.
#[cfg(test)]
pub(crate) fn example_of(line: &str) -> Option<&str> {
    let at = line.len() - example(line)?.1.len() - NAME.len() - 1;
    line[at..].split("  ").next()
}

/// The words of a command line, as far as our examples use a shell's grammar: quotes, and an end at a pipe or an arrow.
#[cfg(test)]
pub(crate) fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for character in line.chars() {
        match (quote, character) {
            (Some(open), close) if open == close => quote = None,
            (None, '"' | '\'') => {
                quote = Some(character);
                word.get_or_insert_default();
            }
            (None, '|' | '>') => break,
            (None, ' ') => words.extend(word.take()),
            _ => word.get_or_insert_default().push(character),
        }
    }
    words.extend(word);
    words
}

/// A word for the shell: as it is, or in single quotes.
pub(crate) fn word(text: &str) -> String {
    if text.chars().all(|c| c.is_ascii_alphanumeric() || "-_./:@".contains(c)) && !text.is_empty() {
        return text.into();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// A text for the shell in double quotes, which read better around a text with single ones.
pub(crate) fn double_quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        if matches!(c, '"' | '\\' | '$' | '`') {
            quoted.push('\\');
        }
        quoted.push(c);
    }
    quoted.push('"');
    quoted
}

/// A path for the shell that is right in every directory.
pub(crate) fn path_word(path: &Path) -> String {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.into());
    word(&absolute.to_string_lossy())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn the_name_is_printed_where_the_shell_finds_this_program_by_it() {
        let directory = tempfile::tempdir().unwrap();
        let place = |name: &str| directory.path().join(name);
        for name in ["build here", "bin", "other"] {
            std::fs::create_dir(place(name)).unwrap();
        }
        let program = place("build here").join("tacho");
        std::fs::write(&program, "").unwrap();
        std::fs::write(place("other").join("tacho"), "").unwrap();
        symlink(&program, place("bin").join("tacho")).unwrap();
        let called = |places: &[&str]| {
            let path = std::env::join_paths(places.iter().map(|name| place(name))).unwrap();
            called(Some(program.clone()), Some(&path))
        };
        let quoted = format!("'{}'", program.display());
        assert_eq!(called(&["bin", "other"]), "tacho");
        assert_eq!(called(&["build here"]), "tacho");
        assert_eq!(called(&["other", "bin"]), quoted, "the shell takes the first");
        assert_eq!(called(&["nowhere"]), quoted);
        assert_eq!(super::called(Some(program.clone()), None), quoted);
        assert_eq!(super::called(None, None), "tacho");
    }

    #[test]
    fn commands_in_texts_and_examples_get_the_name() {
        let none = Place::default();
        let text = "start one with `tacho serve --data d`; tacho is the program, `tacho";
        let expected = "start one with `/x/tacho serve --data d`; tacho is the program, `tacho";
        assert_eq!(with_name(text, "/x/tacho", &none), expected);
        assert_eq!(with_name(text, NAME, &none), text);
        let examples = "Examples:\n  tacho demo      to look at\n  A=1 B=2 tacho x\n  echo 1 | tacho sql\n  see `tacho check`";
        let expected = "Examples:\n  /x/t demo      to look at\n  A=1 B=2 /x/t x\n  echo 1 | /x/t sql\n  see `/x/t check`";
        assert_eq!(examples_with_name(examples, "/x/t"), expected);
    }

    #[test]
    fn hints_are_for_the_place_that_the_user_named() {
        let arguments = ["sql", "--data", "my data", "--config=c.toml", "--url", "http://x", "SELECT 1"];
        let place = Place::of(arguments.map(str::to_owned).into_iter());
        let hint = |command: &str| with_name(&format!("try `tacho {command}`."), "t", &place).into_owned();
        let directory = "--data 'my data' --config c.toml";
        assert_eq!(hint("table list"), format!("try `t table list {directory} --url http://x`."));
        assert_eq!(hint("serve --data other"), "try `t serve --data other`.");
        assert_eq!(hint("config"), format!("try `t config {directory}`."));
        assert_eq!(hint("bench list"), "try `t bench list`.");
    }

    #[test]
    fn words_are_quoted_where_they_must_be() {
        assert_eq!(word("tok0"), "tok0");
        assert_eq!(word("it's me"), r"'it'\''s me'");
        assert_eq!(word(""), "''");
        assert_eq!(double_quoted(r#"a = "$x" \ `y`"#), r#""a = \"\$x\" \\ \`y\`""#);
    }
}
