//! The name under which the user's shell finds this program. Commands in printed texts use it, so that the user can copy
//! them.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The name of the program in the documentation.
pub(crate) const NAME: &str = "tacho";

/// The word that runs this program in a shell: its name if `PATH` leads to this file, otherwise its path.
pub(crate) fn name() -> &'static str {
    static CALLED: OnceLock<String> = OnceLock::new();
    CALLED.get_or_init(|| called(std::env::current_exe().ok(), std::env::var_os("PATH").as_deref()))
}

fn called(program: Option<PathBuf>, path: Option<&OsStr>) -> String {
    let Some(program) = program else { return NAME.to_owned() };
    let found = path.and_then(|path| {
        std::env::split_paths(path).map(|directory| directory.join(NAME)).find(|it| it.is_file())
    });
    let same = found.is_some_and(|found| match (found.canonicalize(), program.canonicalize()) {
        (Ok(found), Ok(program)) => found == program,
        _ => false,
    });
    match program.to_str() {
        Some(program) if !same => word(program),
        _ => NAME.to_owned(),
    }
}

/// Rewrites the commands of this program in a text, which are in backquotes: they get the word that runs the program, and
/// the options for the data directory and the server with which this process runs.
pub(crate) fn runnable(text: &str) -> Cow<'_, str> {
    with_name(text, name(), &DataOptions::of(std::env::args().skip(1)))
}

/// The options of a command line that select the data directory and the server, as words for the shell.
#[derive(Debug, Default)]
struct DataOptions {
    /// `--data` and `--config`, which all commands on data have.
    directory: Vec<String>,
    /// `--url` and `--user`, which commands have that can use a server.
    server: Vec<String>,
}

impl DataOptions {
    fn of(arguments: impl Iterator<Item = String>) -> Self {
        let (mut options, mut arguments) = (Self::default(), arguments);
        while let Some(argument) = arguments.next() {
            let (flag, value) = match argument.split_once('=') {
                Some((flag, value)) => (flag, Some(value.to_owned())),
                None => (argument.as_str(), None),
            };
            let to = match flag {
                "--data" | "--config" => &mut options.directory,
                "--url" | "--user" => &mut options.server,
                _ => continue,
            };
            if let Some(value) = value.or_else(|| arguments.next()) {
                to.extend([flag.to_owned(), word(&value)]);
            }
        }
        options
    }

    /// The options that a command of this program lacks.
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

fn with_name<'a>(text: &'a str, name: &str, options: &DataOptions) -> Cow<'a, str> {
    if !text.contains(&format!("`{NAME} ")) {
        return Cow::Borrowed(text);
    }
    let mut parts: Vec<_> = text.split('`').map(Cow::Borrowed).collect();
    let last = parts.len() - 1;
    for part in &mut parts[1..last] {
        if let Some(command) = part.strip_prefix(&format!("{NAME} ")) {
            let more: String = options.words_for(command).map(|word| format!(" {word}")).collect();
            *part = Cow::Owned(format!("{name} {command}{more}"));
        }
    }
    Cow::Owned(parts.join("`"))
}

/// Rewrites the examples below a help text, which are on lines with two leading blanks.
pub(crate) fn runnable_examples(text: &str) -> String {
    examples_with_name(text, name())
}

fn examples_with_name(text: &str, name: &str) -> String {
    let (written, typed) = (format!("| {NAME} "), format!("| {name} "));
    let line = |line: &str| match example(line) {
        Some((before, after)) => format!("{before}{name} {after}"),
        None => line.replace(&written, &typed),
    };
    with_name(&text.lines().map(line).collect::<Vec<_>>().join("\n"), name, &DataOptions::default())
        .into_owned()
}

/// The text before and after the program's name in the line of an example. Blanks and variables may be before it.
fn example(line: &str) -> Option<(&str, &str)> {
    let (before, after) = line.strip_prefix("  ")?.split_once("tacho ")?;
    let settings = before.split_terminator(' ').all(|word| word.contains('='));
    settings.then(|| (&line[..2 + before.len()], after))
}

/// The command in the line of an example, without the explanation after it.
#[cfg(test)]
pub(crate) fn example_of(line: &str) -> Option<&str> {
    let at = line.len() - example(line)?.1.len() - NAME.len() - 1;
    line[at..].split("  ").next()
}

/// Splits a command line into words, with quotes, up to a pipe or a redirection.
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

/// A word for the shell, in single quotes if necessary.
pub(crate) fn word(text: &str) -> String {
    if text.chars().all(|c| c.is_ascii_alphanumeric() || "-_./:@".contains(c)) && !text.is_empty() {
        return text.into();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// A word for the shell in double quotes, for texts that contain single quotes.
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

/// An absolute path as a word for the shell.
pub(crate) fn path_word(path: &Path) -> String {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.into());
    word(&absolute.to_string_lossy())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn the_program_name_is_printed_if_the_shell_finds_it() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        for name in ["build here", "bin", "other"] {
            std::fs::create_dir(at(name)).unwrap();
        }
        let program = at("build here").join("tacho");
        std::fs::write(&program, "").unwrap();
        std::fs::write(at("other").join("tacho"), "").unwrap();
        symlink(&program, at("bin").join("tacho")).unwrap();
        let called = |directories: &[&str]| {
            let path = std::env::join_paths(directories.iter().map(|name| at(name))).unwrap();
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
    fn commands_in_texts_and_examples_have_the_program_name() {
        let none = DataOptions::default();
        let text = "start one with `tacho serve --data d`; tacho is the program, `tacho";
        let expected = "start one with `/x/tacho serve --data d`; tacho is the program, `tacho";
        assert_eq!(with_name(text, "/x/tacho", &none), expected);
        assert_eq!(with_name(text, NAME, &none), text);
        let examples = "Examples:\n  tacho demo      to look at\n  A=1 B=2 tacho x\n  echo 1 | tacho sql\n  see `tacho check`";
        let expected = "Examples:\n  /x/t demo      to look at\n  A=1 B=2 /x/t x\n  echo 1 | /x/t sql\n  see `/x/t check`";
        assert_eq!(examples_with_name(examples, "/x/t"), expected);
    }

    #[test]
    fn hints_are_for_the_directory_that_the_user_named() {
        let arguments = ["sql", "--data", "my data", "--config=c.toml", "--url", "http://x", "SELECT 1"];
        let options = DataOptions::of(arguments.map(str::to_owned).into_iter());
        let hint = |command: &str| with_name(&format!("try `tacho {command}`."), "t", &options).into_owned();
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
