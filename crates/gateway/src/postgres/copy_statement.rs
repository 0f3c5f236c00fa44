//! `COPY table | (query) TO STDOUT` and its options, as PostgreSQL's manual has them, also in the syntax before version 9.

use super::statement_error::{StatementError, syntax};
use super::words::Words;

/// How COPY writes rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CopyOptions {
    pub(super) format: CopyFormat,
    /// Whether a line with the names of the columns comes first.
    pub(super) header: bool,
    /// Between two values.
    pub(super) delimiter: u8,
    /// What stands for NULL.
    pub(super) null: String,
    pub(super) quote: u8,
    /// Before a quote within quotes.
    pub(super) escape: u8,
    pub(super) force_quote: ForceQuote,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CopyFormat {
    Text,
    Csv,
    Binary,
}

/// The columns whose values CSV always quotes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ForceQuote {
    Columns(Vec<String>),
    All,
}

/// The options of a statement. What it does not say depends on the format.
#[derive(Default)]
struct Given {
    format: Option<CopyFormat>,
    header: bool,
    delimiter: Option<u8>,
    null: Option<String>,
    quote: Option<u8>,
    escape: Option<u8>,
    force_quote: Option<ForceQuote>,
}

/// Reads a statement behind the word COPY. Returns the query whose rows it copies.
pub(super) fn parse(words: &mut Words<'_>) -> Result<(String, CopyOptions), StatementError> {
    let query = match words.in_parentheses() {
        Some(query) => query.to_owned(),
        None => query_of_table(words)?,
    };
    if words.skip(&["from"]) {
        let message = "COPY ... FROM writes; SQL here reads, and deletes rows. Write through one of the doors for devices";
        return Err(StatementError::Unsupported(message.into()));
    }
    if !words.skip(&["to"]) {
        return Err(syntax("COPY needs TO STDOUT behind the table or the query"));
    }
    if !words.skip(&["stdout"]) {
        let message = "COPY writes no files and starts no programs; write TO STDOUT";
        return Err(StatementError::Unsupported(message.into()));
    }
    let mut given = Given::default();
    words.skip(&["with"]);
    if words.symbol("(") {
        loop {
            given.option(words)?;
            if words.symbol(")") {
                break;
            }
            if !words.symbol(",") {
                return Err(syntax("COPY needs a comma between its options"));
            }
        }
    } else {
        while !words.is_empty() {
            given.old_option(words)?;
        }
    }
    if words.is_empty() {
        Ok((query, given.options()?))
    } else {
        Err(syntax("text behind the options of COPY"))
    }
}

/// `table [(column, ...)]`
fn query_of_table(words: &mut Words<'_>) -> Result<String, StatementError> {
    let table = words.quoted_name().ok_or_else(|| syntax("COPY needs a table or a query in parentheses"))?;
    let columns = words.in_parentheses().unwrap_or("*");
    Ok(format!("SELECT {columns} FROM {table}"))
}

impl Given {
    /// An option in parentheses.
    fn option(&mut self, words: &mut Words<'_>) -> Result<(), StatementError> {
        let name = words.word().ok_or_else(|| syntax("COPY needs the name of an option"))?;
        match name.as_str() {
            "format" => {
                let format = words.name().or_else(|| words.string()).unwrap_or_default();
                self.format = Some(match format.to_ascii_lowercase().as_str() {
                    "text" => CopyFormat::Text,
                    "csv" => CopyFormat::Csv,
                    "binary" => CopyFormat::Binary,
                    other => {
                        return Err(StatementError::Syntax(format!(
                            "COPY format {other:?} is not text, csv or binary"
                        )));
                    }
                });
            }
            "header" => self.header = truth(words)?,
            "delimiter" => self.delimiter = Some(character(words, "DELIMITER")?),
            "null" => self.null = Some(string(words, "NULL")?),
            "quote" => self.quote = Some(character(words, "QUOTE")?),
            "escape" => self.escape = Some(character(words, "ESCAPE")?),
            "encoding" => encoding(words)?,
            "force_quote" => {
                let columns = match words.in_parentheses() {
                    Some(columns) => ForceQuote::Columns(columns.split(',').map(column).collect()),
                    None if words.symbol("*") => ForceQuote::All,
                    None => return Err(syntax("FORCE_QUOTE needs columns in parentheses, or *")),
                };
                self.force_quote = Some(columns);
            }
            other => return Err(StatementError::Unsupported(format!("COPY TO has no option {other}"))),
        }
        Ok(())
    }

    /// An option without parentheses.
    fn old_option(&mut self, words: &mut Words<'_>) -> Result<(), StatementError> {
        let name = words.word().ok_or_else(|| syntax("COPY needs the name of an option"))?;
        words.skip(&["as"]);
        match name.as_str() {
            "binary" => self.format = Some(CopyFormat::Binary),
            "csv" => self.format = Some(CopyFormat::Csv),
            "header" => self.header = true,
            "delimiter" | "delimiters" => self.delimiter = Some(character(words, "DELIMITER")?),
            "null" => self.null = Some(string(words, "NULL")?),
            "quote" => self.quote = Some(character(words, "QUOTE")?),
            "escape" => self.escape = Some(character(words, "ESCAPE")?),
            "encoding" => encoding(words)?,
            "force" if words.skip(&["quote"]) => {
                let mut columns = Vec::new();
                if words.symbol("*") {
                    self.force_quote = Some(ForceQuote::All);
                    return Ok(());
                }
                while let Some(name) = words.name() {
                    columns.push(name);
                    if !words.symbol(",") {
                        break;
                    }
                }
                self.force_quote = Some(ForceQuote::Columns(columns));
            }
            other => return Err(StatementError::Unsupported(format!("COPY TO has no option {other}"))),
        }
        Ok(())
    }

    fn options(self) -> Result<CopyOptions, StatementError> {
        let format = self.format.unwrap_or(CopyFormat::Text);
        let is_csv = format == CopyFormat::Csv;
        if !is_csv && (self.quote.is_some() || self.escape.is_some() || self.force_quote.is_some()) {
            return Err(StatementError::Unsupported("COPY quotes in the format CSV only".into()));
        }
        if format == CopyFormat::Binary && (self.delimiter.is_some() || self.null.is_some() || self.header) {
            let message = "COPY in the format BINARY has no header, delimiter and NULL";
            return Err(StatementError::Syntax(message.into()));
        }
        let quote = self.quote.unwrap_or(b'"');
        let null = self.null.unwrap_or_else(|| if is_csv { "" } else { "\\N" }.to_owned());
        if null.contains(['\n', '\r']) {
            return Err(StatementError::Syntax("COPY cannot write line breaks for NULL".into()));
        }
        Ok(CopyOptions {
            format,
            header: self.header,
            delimiter: self.delimiter.unwrap_or(if is_csv { b',' } else { b'\t' }),
            null,
            quote,
            escape: self.escape.unwrap_or(quote),
            force_quote: self.force_quote.unwrap_or(ForceQuote::Columns(Vec::new())),
        })
    }
}

fn string(words: &mut Words<'_>, option: &str) -> Result<String, StatementError> {
    words.string().ok_or_else(|| StatementError::Syntax(format!("{option} of COPY needs a text in quotes")))
}

fn character(words: &mut Words<'_>, option: &str) -> Result<u8, StatementError> {
    match string(words, option)?.as_bytes() {
        [b'\n' | b'\r'] => Err(StatementError::Syntax(format!("{option} of COPY cannot be a line break"))),
        [one] if one.is_ascii() => Ok(*one),
        _ => {
            Err(StatementError::Unsupported(format!("{option} of COPY must be a single one-byte character")))
        }
    }
}

fn encoding(words: &mut Words<'_>) -> Result<(), StatementError> {
    let name = string(words, "ENCODING")?;
    if ["utf8", "utf-8", "unicode"].contains(&name.to_ascii_lowercase().as_str()) {
        return Ok(());
    }
    Err(StatementError::Unsupported(format!("COPY in the encoding {name}; it writes UTF8")))
}

/// A truth value; nothing means true.
fn truth(words: &mut Words<'_>) -> Result<bool, StatementError> {
    let written = words.word().or_else(|| words.number().map(str::to_owned)).or_else(|| words.string());
    match written.as_deref().map(str::to_ascii_lowercase).as_deref() {
        None | Some("true" | "on" | "1") => Ok(true),
        Some("false" | "off" | "0") => Ok(false),
        Some(other) => {
            Err(StatementError::Syntax(format!("HEADER of COPY TO is true or false, not {other}")))
        }
    }
}

fn column(written: &str) -> String {
    let name = written.trim();
    if name.starts_with('"') { crate::statements::unquoted(name) } else { name.to_ascii_lowercase() }
}

#[cfg(test)]
mod tests {
    use super::super::statement::{Statement, parse};
    use super::*;

    fn copied(text: &str) -> (String, CopyOptions) {
        match parse(text) {
            Ok(Statement::Copy { query, options }) => (query, options),
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn queries_and_options_are_read() {
        let (query, options) = copied("COPY (SELECT ')', (1)) TO STDOUT");
        assert_eq!(query, "SELECT ')', (1)");
        assert_eq!((options.format, options.delimiter, &*options.null), (CopyFormat::Text, b'\t', "\\N"));
        let (query, options) =
            copied("copy public.\"T\" (a, \"B\") to stdout with (format csv, header, force_quote *)");
        assert_eq!(query, "SELECT a, \"B\" FROM public.\"T\"");
        assert_eq!((options.header, options.force_quote, &*options.null), (true, ForceQuote::All, ""));
        let (_, options) =
            copied("COPY t TO STDOUT CSV HEADER DELIMITER AS ';' QUOTE '''' FORCE QUOTE a, \"B\"");
        assert_eq!((options.delimiter, options.quote, options.escape), (b';', b'\'', b'\''));
        assert_eq!(options.force_quote, ForceQuote::Columns(vec!["a".into(), "B".into()]));
        let (_, options) = copied("COPY t TO STDOUT (DELIMITER E'\\t', NULL 'x', HEADER off)");
        assert_eq!((options.delimiter, &*options.null, options.header), (b'\t', "x", false));
        assert_eq!(copied("COPY t TO STDOUT WITH BINARY").1.format, CopyFormat::Binary);
    }

    #[test]
    fn other_statements_are_refused() {
        for text in [
            "COPY t FROM STDIN",
            "COPY t TO '/tmp/x'",
            "COPY t TO PROGRAM 'sh'",
            "COPY t TO STDOUT (QUOTE 'x')",
        ] {
            assert!(matches!(parse(text), Err(StatementError::Unsupported(_))), "{text}");
        }
        for text in ["COPY", "COPY t", "COPY t TO STDOUT (FORMAT xml)", "COPY t TO STDOUT (FORMAT csv) x"] {
            assert!(matches!(parse(text), Err(StatementError::Syntax(_))), "{text}");
        }
    }
}
