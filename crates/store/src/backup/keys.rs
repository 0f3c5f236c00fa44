//! The files of the key-value engine in a backup: their paths, which a restore knows.

/// The directory of the files of the key-value engine, in a data directory and in a backup.
pub const KEYS_DIRECTORY: &str = "keys";

/// What a path in the directory of the engine is.
#[derive(PartialEq, Eq)]
enum Kind {
    Table,
    Other,
}

/// Whether a path is that of a file of the key-value engine.
pub fn is_keys_file(path: &str) -> bool {
    kind(path).is_some()
}

/// Whether a path is that of a table of the key-value engine. The engine does not change a table while it is open, but another opening may
/// give its name to another one: who keeps a table compares its SHA-256.
pub fn is_keys_table(path: &str) -> bool {
    kind(path) == Some(Kind::Table)
}

fn kind(path: &str) -> Option<Kind> {
    let mut names = path.strip_prefix(KEYS_DIRECTORY)?.strip_prefix('/')?.split('/');
    let is_number =
        |text: &str| (1..=20).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    let names = [names.next(), names.next(), names.next(), names.next(), names.next()];
    match names {
        [Some("version" | "lock"), None, ..] => Some(Kind::Other),
        [Some(journal), None, ..] if journal.strip_suffix(".jnl").is_some_and(is_number) => Some(Kind::Other),
        [Some("keyspaces"), Some(space), Some("current"), None, _] if is_number(space) => Some(Kind::Other),
        [Some("keyspaces"), Some(space), Some(list), None, _] if is_number(space) => {
            list.strip_prefix('v').is_some_and(is_number).then_some(Kind::Other)
        }
        [Some("keyspaces"), Some(space), Some("tables"), Some(table), None] if is_number(space) => {
            is_number(table).then_some(Kind::Table)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_files_of_the_engine_are_known() {
        for path in
            ["keys/version", "keys/lock", "keys/0.jnl", "keys/keyspaces/0/current", "keys/keyspaces/12/v3"]
        {
            assert!(is_keys_file(path) && !is_keys_table(path), "{path}");
        }
        assert!(is_keys_file("keys/keyspaces/0/tables/34") && is_keys_table("keys/keyspaces/0/tables/34"));
        for path in [
            "keys",
            "keys/",
            "keys/x",
            "keys/.jnl",
            "keys/a.jnl",
            "keys/version/x",
            "keys/0.jnl/x",
            "keys/keyspaces/a/current",
            "keys/keyspaces/0/current/x",
            "keys/keyspaces/0/v",
            "keys/keyspaces/0/tables",
            "keys/keyspaces/0/tables/x",
            "keys/keyspaces/0/tables/1/2",
            "keys/keyspaces/0/blobs/1",
            "keys.dump",
            "x/keys/lock",
        ] {
            assert!(!is_keys_file(path), "{path}");
        }
    }
}
