//! Rewrites relaxed JSON as JSON. Gson parses relaxed JSON in its lenient mode, so ThingsBoard accepts it from devices.
//!
//! Accepted are: names and strings in single quotes or without quotes, `=` and `=>` for `:`, `;` for `,`, comments
//! (`//`, `#`, `/* */`), control characters in strings, the escape `\'`, `true`, `false` and `null` in any case, and
//! numbers such as `05`, `+5`, `.5` and `5.`. A word without quotes that is not a number is a string.
//!
//! A comma before the end of a list or an object is ignored, as in many programming languages. Gson adds a null to a list and
//! refuses the comma in an object.
//!
//! This reader refuses some text that Gson accepts, because a value would be invented or lost: missing values in a list
//! (`[1,,2]`), and NaN and infinities, which would become text beside the numbers of their key.

use std::fmt::Write as _;

use super::error::{PayloadError, over};

/// Rewrites relaxed JSON as JSON. The result is at most six times as long. `depth_max` bounds the nesting of brackets.
pub(super) fn rewrite(text: &str, depth_max: usize) -> Result<String, PayloadError> {
    let mut reader = Reader { text, at: 0, out: String::with_capacity(text.len() + text.len() / 4) };
    reader.document(depth_max)?;
    Ok(reader.out)
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    out: String,
}

/// The expected next token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Value,
    /// The first name of an object, or its end.
    NameOrEnd,
    /// A name after a comma, or the end.
    AnotherNameOrEnd,
    /// The first value of an array, or its end.
    ValueOrEnd,
    /// A value after a comma, or the end.
    AnotherValueOrEnd,
    /// A separator, or the end of the open list or object.
    Separator,
}

impl<'a> Reader<'a> {
    /// One value without anything after it. Open lists and objects are kept in a vector, so nesting needs no call stack.
    fn document(&mut self, depth_max: usize) -> Result<(), PayloadError> {
        let mut open: Vec<char> = Vec::new();
        let mut next = Next::Value;
        loop {
            self.skip_blanks()?;
            let Some(found) = self.peek() else {
                return if next == Next::Separator && open.is_empty() { Ok(()) } else { Err(self.ended()) };
            };
            next = match (next, found, open.last().copied()) {
                (Next::NameOrEnd | Next::AnotherNameOrEnd, '}', _)
                | (Next::ValueOrEnd | Next::AnotherValueOrEnd, ']', _) => self.close(&mut open),
                (Next::Separator, '}', Some('{')) | (Next::Separator, ']', Some('[')) => {
                    self.close(&mut open)
                }
                (Next::Separator, ',' | ';', Some(bracket)) => {
                    self.at += 1;
                    if bracket == '{' { Next::AnotherNameOrEnd } else { Next::AnotherValueOrEnd }
                }
                (Next::Separator, _, None) => return Err(self.unexpected("trailing characters:")),
                (Next::Separator, _, Some(_)) => {
                    return Err(self.unexpected("expected `,` or the end, found"));
                }
                (Next::AnotherNameOrEnd, ..) => {
                    self.out.push(',');
                    self.name()?;
                    Next::Value
                }
                (Next::NameOrEnd, ..) => {
                    self.name()?;
                    Next::Value
                }
                (Next::AnotherValueOrEnd, ..) => {
                    self.out.push(',');
                    // Only once: a value follows.
                    next = Next::Value;
                    continue;
                }
                (Next::Value | Next::ValueOrEnd, '{' | '[', _) => {
                    open.push(found);
                    over("the nesting of the payload", open.len(), depth_max)?;
                    self.take(found);
                    if found == '{' { Next::NameOrEnd } else { Next::ValueOrEnd }
                }
                (Next::Value | Next::ValueOrEnd, ..) => {
                    self.scalar()?;
                    Next::Separator
                }
            };
        }
    }

    fn close(&mut self, open: &mut Vec<char>) -> Next {
        let bracket = if open.pop() == Some('{') { '}' } else { ']' };
        self.take(bracket);
        Next::Separator
    }

    /// A name, and the sign between it and its value.
    fn name(&mut self) -> Result<(), PayloadError> {
        match self.peek() {
            Some(quote @ ('"' | '\'')) => self.string(quote)?,
            _ => {
                let word = self.word();
                if word.is_empty() {
                    return Err(self.unexpected("expected a name, found"));
                }
                write_string(word, &mut self.out);
            }
        }
        self.skip_blanks()?;
        match self.peek() {
            Some(':') => self.at += 1,
            Some('=') => self.at += if self.rest().starts_with("=>") { 2 } else { 1 },
            Some(_) => return Err(self.unexpected("expected `:`, found")),
            None => return Err(self.ended()),
        }
        self.out.push(':');
        Ok(())
    }

    /// A value other than a list or object.
    fn scalar(&mut self) -> Result<(), PayloadError> {
        if let Some(quote @ ('"' | '\'')) = self.peek() {
            return self.string(quote);
        }
        let begin = self.at;
        let word = self.word();
        for keyword in ["true", "false", "null"] {
            if word.eq_ignore_ascii_case(keyword) {
                self.out.push_str(keyword);
                return Ok(());
            }
        }
        if word.is_empty() {
            return Err(self.unexpected("expected a value, found"));
        }
        if is_not_finite(word) {
            let text = format!("{word} is not a JSON number, send null or leave the key out,");
            return Err(PayloadError::Json(text + &self.place(begin)));
        }
        if !write_number(word, &mut self.out) {
            write_string(word, &mut self.out);
        }
        Ok(())
    }

    /// A word without quotes. An ASCII character ends it, so it ends between characters.
    fn word(&mut self) -> &'a str {
        let rest = &self.text[self.at..];
        let ends = |byte: u8| byte <= b' ' || byte == 0x7f || br#"/\;#={}[]:,"'"#.contains(&byte);
        let word = &rest[..rest.bytes().position(ends).unwrap_or(rest.len())];
        self.at += word.len();
        word
    }

    /// A string in quotes of either kind.
    fn string(&mut self, quote: char) -> Result<(), PayloadError> {
        self.at += 1;
        self.out.push('"');
        loop {
            let Some(found) = self.peek() else { return Err(self.ended()) };
            match found {
                '\\' => self.escape()?,
                end if end == quote => {
                    self.take('"');
                    return Ok(());
                }
                other => {
                    self.at += other.len_utf8();
                    write_character(other, &mut self.out);
                }
            }
        }
    }

    fn escape(&mut self) -> Result<(), PayloadError> {
        let mut after = self.rest().chars().skip(1);
        match after.next() {
            Some('\'') => self.out.push('\''),
            // The line break itself.
            Some('\n') => self.out.push_str("\\n"),
            Some(escaped @ ('"' | '\\' | '/' | 'b' | 'f' | 'n' | 'r' | 't')) => {
                self.out.push('\\');
                self.out.push(escaped);
            }
            Some('u') => {
                let digits: String = after.take(4).take_while(char::is_ascii_hexdigit).collect();
                if digits.len() < 4 {
                    return Err(self.unexpected("`\\u` needs four hexadecimal digits:"));
                }
                self.out.push_str("\\u");
                self.out.push_str(&digits);
                self.at += 4;
            }
            Some(_) => return Err(self.unexpected("invalid escape:")),
            None => return Err(self.ended()),
        }
        self.at += 2;
        Ok(())
    }

    /// Blanks and comments.
    fn skip_blanks(&mut self) -> Result<(), PayloadError> {
        loop {
            let rest = self.rest();
            let blanks = rest.len() - rest.trim_start_matches([' ', '\t', '\r', '\n']).len();
            let rest = &rest[blanks..];
            let comment = match rest.as_bytes() {
                [b'#', ..] | [b'/', b'/', ..] => rest.find('\n').unwrap_or(rest.len()),
                [b'/', b'*', ..] => match rest[2..].find("*/") {
                    Some(inner) => inner + 4,
                    None => return Err(self.ended()),
                },
                _ => 0,
            };
            self.at += blanks + comment;
            if comment == 0 {
                return Ok(());
            }
        }
    }

    /// Takes one ASCII character and writes `written` for it.
    fn take(&mut self, written: char) {
        self.at += 1;
        self.out.push(written);
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn unexpected(&self, what: &str) -> PayloadError {
        let found = self.rest().chars().next().unwrap_or_default();
        PayloadError::Json(format!("{what} `{}`{}", found.escape_debug(), self.place(self.at)))
    }

    fn ended(&self) -> PayloadError {
        PayloadError::Json(format!("it ends too early,{}", self.place(self.text.len())))
    }

    fn place(&self, at: usize) -> String {
        let before = &self.text[..at];
        let line_begin = before.rfind('\n').map_or(0, |end| end + 1);
        let line = before.matches('\n').count() + 1;
        format!(" at line {line} column {}", before[line_begin..].chars().count() + 1)
    }
}

/// Words for NaN and infinity in various languages.
fn is_not_finite(word: &str) -> bool {
    let word = word.strip_prefix(['+', '-']).unwrap_or(word);
    ["nan", "inf", "infinity"].iter().any(|name| word.eq_ignore_ascii_case(name))
}

/// Writes a number as JSON with all its digits. Returns `false` if the word is not a number.
fn write_number(word: &str, out: &mut String) -> bool {
    let (sign, unsigned) = match word.as_bytes().first() {
        Some(b'-') => ("-", &word[1..]),
        Some(b'+') => ("", &word[1..]),
        _ => ("", word),
    };
    let (mantissa, exponent) = match unsigned.find(['e', 'E']) {
        Some(at) => unsigned.split_at(at),
        None => (unsigned, ""),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    let are_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let power = exponent.get(1..).map(|text| text.strip_prefix(['+', '-']).unwrap_or(text));
    let is_number = are_digits(whole)
        && fraction.is_none_or(are_digits)
        && !(whole.is_empty() && fraction.is_none_or(str::is_empty))
        && power.is_none_or(|digits| !digits.is_empty() && are_digits(digits));
    if !is_number {
        return false;
    }
    let whole = whole.trim_start_matches('0');
    out.push_str(sign);
    out.push_str(if whole.is_empty() { "0" } else { whole });
    if let Some(fraction) = fraction {
        out.push('.');
        out.push_str(if fraction.is_empty() { "0" } else { fraction });
    }
    out.push_str(exponent);
    true
}

fn write_string(text: &str, out: &mut String) {
    out.push('"');
    text.chars().for_each(|character| write_character(character, out));
    out.push('"');
}

fn write_character(character: char, out: &mut String) {
    match character {
        '"' => out.push_str("\\\""),
        control @ '\0'..='\x1f' => {
            write!(out, "\\u{:04x}", control as u32).expect("BUG: writing to a string fails");
        }
        other => out.push(other),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde::de::IgnoredAny;
    use serde_json::Value;

    use super::*;

    fn read(text: &str) -> String {
        rewrite(text, 4).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    fn refusal(text: &str) -> String {
        rewrite(text, 4).expect_err(text).to_string()
    }

    #[test]
    fn names_and_strings_may_have_any_quotes_or_none() {
        assert_eq!(read("{temperature:25}"), r#"{"temperature":25}"#);
        assert_eq!(read("{'a':'x','b':\"y\",c:z}"), r#"{"a":"x","b":"y","c":"z"}"#);
        assert_eq!(read(r#"{'it\'s "it"':'\u00e9\n'}"#), r#"{"it's \"it\"":"\u00e9\n"}"#);
        assert_eq!(read("{temp.out-1_ä: v1.2.3-rc}"), r#"{"temp.out-1_ä":"v1.2.3-rc"}"#);
        assert_eq!(read("{1:2}"), r#"{"1":2}"#);
        assert_eq!(
            read("{'a':'tab\there', b:'two\nlines'}"),
            r#"{"a":"tab\u0009here","b":"two\u000alines"}"#
        );
    }

    #[test]
    fn separators_and_comments_of_configuration_files() {
        assert_eq!(read("{a=1;b=>2,c : 3}"), r#"{"a":1,"b":2,"c":3}"#);
        assert_eq!(read("// one\n[1, # two\n 2; /* three: ] */ 3]//"), "[1,2,3]");
        assert_eq!(read("{ } \r\n"), "{}");
    }

    #[test]
    fn a_trailing_comma_is_ignored() {
        assert_eq!(read("[1,2,]"), "[1,2]");
        assert_eq!(read("{\"a\":1,}"), "{\"a\":1}");
        assert_eq!(read("[{a:[1; ], b:{c:2,},} , // the end\n]"), r#"[{"a":[1],"b":{"c":2}}]"#);
    }

    #[test]
    fn words_are_keywords_numbers_or_strings() {
        assert_eq!(read("[True,FALSE,null,None,tru]"), r#"[true,false,null,"None","tru"]"#);
        assert_eq!(read("[05,+5,-.5,5.,00,-0012.50e+07]"), "[5,5,-0.5,5.0,0,-12.50e+07]");
        assert_eq!(read("[9223372036854775808123,1e400]"), "[9223372036854775808123,1e400]");
        assert_eq!(read("[-,.,+,1e,1e+,0x1F,1.2.3,--5]").matches('"').count(), 16);
    }

    #[test]
    fn non_finite_numbers_are_refused_by_name() {
        for word in ["NaN", "nan", "-nan", "inf", "-Infinity", "+INF"] {
            let text = refusal(&format!("{{t:{word},h:4}}"));
            assert!(text.contains(word) && text.contains("send null"), "{text}");
        }
        // Keys and quoted texts may be these words.
        assert_eq!(read("{nan:'nan'}"), r#"{"nan":"nan"}"#);
    }

    #[test]
    fn refusals_name_the_position() {
        for (text, part) in [
            ("", "ends too early, at line 1 column 1"),
            ("{a:1", "ends too early, at line 1 column 5"),
            ("{a:'1}", "ends too early"),
            ("{a:1 /* }", "ends too early"),
            ("{a:}", "expected a value, found `}` at line 1 column 4"),
            ("{,}", "expected a name, found `,` at line 1 column 2"),
            ("{a:1,,}", "expected a name, found `,` at line 1 column 6"),
            ("{a:1\n,,b:2}", "expected a name, found `,` at line 2 column 2"),
            ("{a 1}", "expected `:`, found `1`"),
            ("{a:1 2}", "expected `,` or the end, found `2`"),
            ("{a:12:30}", "found `:`"),
            ("[,]", "expected a value, found `,`"),
            ("[1,,]", "expected a value, found `,`"),
            ("[1,}", "expected a value, found `}`"),
            ("{a:1,]", "expected a name, found `]`"),
            ("[1,", "ends too early"),
            ("[1,,2]", "expected a value, found `,`"),
            ("[1}", "found `}`"),
            ("{a:1}]", "trailing characters: `]`"),
            ("{a:1}\0", "trailing characters: `\\0`"),
            ("{a:5\"}", "found `\\\"`"),
            (r"{a:'\x'}", "invalid escape"),
            (r"{a:'\u12'}", "four hexadecimal digits"),
            ("{/:1}", "expected a name"),
        ] {
            let found = refusal(text);
            assert!(found.contains(part), "{text:?}: {found}");
        }
    }

    #[test]
    fn nesting_is_bounded_and_costs_no_stack() {
        assert_eq!(read("[[[[]]]]"), "[[[[]]]]");
        assert!(refusal("[[[[[]]]]]").contains("nesting of the payload is 5, the limit is 4"));
        let deep = "[".repeat(1_000_000);
        assert!(rewrite(&deep, usize::MAX).is_err());
    }

    #[test]
    fn the_result_is_at_most_six_times_as_long() {
        for text in ["[a]".to_owned(), format!("['{}']", "\u{1}".repeat(1_000)), "{a:b}".to_owned()] {
            assert!(read(&text).len() <= 6 * text.len(), "{text:?}");
        }
    }

    /// JSON of a few levels.
    fn json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 20, 4, |inner| {
            let list = prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from);
            let object = prop::collection::btree_map(any::<String>(), inner, 0..4);
            prop_oneof![list, object.prop_map(|members| members.into_iter().collect())]
        })
    }

    proptest! {
        #[test]
        fn json_keeps_its_meaning(value in json(), pretty: bool) {
            let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) };
            let text = text.unwrap();
            let read = |text: &str| serde_json::from_str::<Value>(text).unwrap();
            prop_assert_eq!(read(&rewrite(&text, 10).unwrap()), read(&text));
        }

        #[test]
        fn accepted_text_becomes_valid_json(text in r#"[{}\[\]:,;='"\\/#*a-cNntrue0-9.+\-eE \n\t\x01u]{0,40}"#) {
            if let Ok(rewritten) = rewrite(&text, 4) {
                prop_assert!(serde_json::from_str::<IgnoredAny>(&rewritten).is_ok(), "{:?}: {}", text, rewritten);
                prop_assert!(rewritten.len() <= 6 * text.len());
            }
        }

        #[test]
        fn objects_without_quotes_equal_those_with_quotes(
            members in prop::collection::btree_map("[a-z_]{1,8}", any::<i32>(), 0..6), sign in "(:|=|=>)", comma in "[,;]",
        ) {
            let text: Vec<String> = members.iter().map(|(name, value)| format!("{name} {sign} {value}")).collect();
            let rewritten = rewrite(&format!("{{{}}}", text.join(&comma)), 1).unwrap();
            prop_assert_eq!(serde_json::from_str::<Value>(&rewritten).unwrap(), serde_json::to_value(&members).unwrap());
        }
    }
}
