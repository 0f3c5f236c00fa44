//! Command templates with places for keys and data, as in memtier_benchmark's `--command`: `HSET __key__ f1 __data__`.

use wire::resp::write;

const KEY: &str = "__key__";
const DATA: &str = "__data__";

/// A part of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    /// Bytes to send, including RESP headers.
    Bytes(Vec<u8>),
    /// A word that contains the next key between two texts.
    Key { before: Vec<u8>, after: Vec<u8> },
    /// A word of data.
    Data,
}

/// A command of a group, as a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Template {
    pub(crate) parts: Vec<Part>,
    pub(crate) hits: Hits,
    /// Whether the key exists after the command, permanently.
    stores: bool,
}

/// Commands after which their key exists.
const STORING: [&str; 9] = ["SET", "HSET", "HMSET", "SADD", "ZADD", "LPUSH", "RPUSH", "SETRANGE", "APPEND"];
/// Arguments of SET after which its key expires.
const EXPIRING: [&str; 4] = ["EX", "PX", "EXAT", "PXAT"];

/// Which parts of a reply count as hits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hits {
    /// The reply as a whole: a null or an empty aggregate is a miss.
    Whole,
    /// Every element of the reply.
    Elements,
}

impl Template {
    /// Parses a command line: blanks separate words, `"..."` and `'...'` quote them.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let words = words(text)?;
        let Some(name) = words.first() else { return Err("an empty command".to_owned()) };
        let hits = match name.to_ascii_uppercase().as_str() {
            "MGET" | "HMGET" => Hits::Elements,
            _ => Hits::Whole,
        };
        let mut parts = Vec::new();
        let mut bytes = Vec::new();
        write::array(&mut bytes, words.len());
        for word in &words {
            if let Some((before, after)) = word.split_once(KEY) {
                let (before, after) = (before.as_bytes().to_vec(), after.as_bytes().to_vec());
                parts.push(Part::Bytes(std::mem::take(&mut bytes)));
                parts.push(Part::Key { before, after });
            } else if word == DATA {
                parts.push(Part::Bytes(std::mem::take(&mut bytes)));
                parts.push(Part::Data);
            } else if word.contains(DATA) {
                return Err(format!("`{word}`: {DATA} must be a word of its own"));
            } else {
                write::bulk(&mut bytes, word.as_bytes());
            }
        }
        parts.push(Part::Bytes(bytes));
        parts.retain(|part| *part != Part::Bytes(Vec::new()));
        let is_one_of = |word: &String, names: &[&str]| names.contains(&word.to_ascii_uppercase().as_str());
        let stores = is_one_of(name, &STORING) && !words.iter().any(|word| is_one_of(word, &EXPIRING));
        Ok(Self { parts, hits, stores })
    }

    /// Whether the command has one key, which is a word of its own.
    pub(crate) fn names_one_key(&self) -> bool {
        let is_key = |part: &&Part| matches!(part, Part::Key { .. });
        let mut keys = self.parts.iter().filter(is_key);
        let is_bare = |part: &Part| matches!(part, Part::Key { before, after } if before.is_empty() && after.is_empty());
        keys.next().is_some_and(is_bare) && keys.next().is_none()
    }

    /// Whether the key exists after the command, permanently.
    pub(crate) fn stores(&self) -> bool {
        self.stores
    }
}

fn words(text: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut chars = text.chars().peekable();
    loop {
        while chars.next_if(|c| c.is_whitespace()).is_some() {}
        let Some(&first) = chars.peek() else { return Ok(words) };
        let mut word = String::new();
        if first == '"' || first == '\'' {
            chars.next();
            loop {
                match chars.next() {
                    Some(c) if c == first => break,
                    Some(c) => word.push(c),
                    None => return Err(format!("`{text}`: a quotation mark is not closed")),
                }
            }
        } else {
            while let Some(c) = chars.next_if(|c| !c.is_whitespace()) {
                word.push(c);
            }
        }
        words.push(word);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_become_bytes_with_places() {
        let template = Template::parse("HSET user:__key__:x \"field one\" __data__ 'b'").unwrap();
        let Part::Bytes(first) = &template.parts[0] else { panic!("{template:?}") };
        assert_eq!(first, b"*5\r\n$4\r\nHSET\r\n");
        assert_eq!(template.parts[1], Part::Key { before: b"user:".to_vec(), after: b":x".to_vec() });
        assert_eq!(template.parts[2], Part::Bytes(b"$9\r\nfield one\r\n".to_vec()));
        assert_eq!(template.parts[3..], [Part::Data, Part::Bytes(b"$1\r\nb\r\n".to_vec())]);
    }

    #[test]
    fn wrong_commands_say_what_is_wrong() {
        for (text, expected) in
            [("", "empty"), ("GET \"a", "not closed"), ("SET __key__ x__data__", "word of its own")]
        {
            let error = Template::parse(text).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }
}
