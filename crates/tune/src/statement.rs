//! Statements that change a running target.

use std::fmt;

use serde::{Deserialize, Serialize};

/// One step of a change. The probe of the target carries it out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Statement {
    /// An SQL statement.
    Sql(String),
    /// The words of a command of Redis.
    Command(Vec<String>),
    /// An HTTP PUT of JSON.
    Put {
        /// The path with its leading `/`.
        path: String,
        body: String,
    },
    /// A text for a file below `/proc/sys` or `/sys` of this machine.
    Write {
        /// The absolute path.
        path: String,
        text: String,
    },
}

/// The directory of the kernel's parameters.
const PROC_SYS: &str = "/proc/sys/";

/// As a person would write it at a prompt.
impl fmt::Display for Statement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sql(text) => f.write_str(text),
            Self::Command(words) => {
                let words: Vec<String> = words.iter().map(|word| shell_word(word)).collect();
                f.write_str(&words.join(" "))
            }
            Self::Put { path, body } => write!(f, "PUT {path} {body}"),
            Self::Write { path, text } => match path.strip_prefix(PROC_SYS) {
                Some(name) => write!(f, "sysctl -w {}={}", name.replace('/', "."), shell_word(text)),
                None => write!(f, "echo {} > {path}", shell_word(text)),
            },
        }
    }
}

/// A word in quotes if a shell would see several words, or none, in it.
fn shell_word(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.:/{}".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_shown_as_a_person_writes_them() {
        let words =
            |words: &[&str]| Statement::Command(words.iter().map(|word| (*word).to_owned()).collect());
        let write =
            |path: &str, text: &str| Statement::Write { path: path.to_owned(), text: text.to_owned() };
        for (statement, expected) in [
            (words(&["CONFIG", "SET", "save", ""]), "CONFIG SET save ''"),
            (words(&["CONFIG", "SET", "maxmemory", "1024"]), "CONFIG SET maxmemory 1024"),
            (write("/proc/sys/vm/swappiness", "1"), "sysctl -w vm.swappiness=1"),
            (
                write("/proc/sys/net/ipv4/ip_local_port_range", "1024 65535"),
                "sysctl -w net.ipv4.ip_local_port_range='1024 65535'",
            ),
            (write("/sys/kernel/mm/x", "madvise"), "echo madvise > /sys/kernel/mm/x"),
        ] {
            assert_eq!(statement.to_string(), expected);
        }
    }

    #[test]
    fn a_file_keeps_a_statement() {
        let statement = Statement::Put { path: "/logs/_settings".to_owned(), body: "{}".to_owned() };
        let text = serde_json::to_string(&statement).unwrap();
        assert_eq!(text, r#"{"put":{"path":"/logs/_settings","body":"{}"}}"#);
        assert_eq!(serde_json::from_str::<Statement>(&text).unwrap(), statement);
    }
}
