//! The grammar of a line, character by character and without regard to time: the parser is compared with it.

use super::value::LineValue;

/// Measurement, tags, fields and time.
pub(super) type Naive = (String, Vec<(String, String)>, Vec<(String, LineValue<'static>)>, Option<i64>);

/// Reads a line without its line break; `None` if it is malformed.
pub(super) fn read(line: &str) -> Option<Naive> {
    let mut input: Vec<char> = line.chars().rev().collect();
    let measurement = name(&mut input, &[',', ' '], "=, ")?;
    let mut tags = Vec::new();
    while eat(&mut input, ',') {
        let key = name(&mut input, &[',', ' ', '='], "=, ")?;
        eat(&mut input, '=').then_some(())?;
        tags.push((key, name(&mut input, &[',', ' ', '='], "=, ")?));
    }
    eat(&mut input, ' ').then_some(())?;
    blanks(&mut input);
    let mut fields = Vec::new();
    loop {
        let key = name(&mut input, &[',', ' ', '='], "=, \"")?;
        eat(&mut input, '=').then_some(())?;
        fields.push((key, value(&mut input)?));
        if !eat(&mut input, ',') {
            break;
        }
    }
    if input.last().is_some_and(|next| *next != ' ') {
        return None;
    }
    blanks(&mut input);
    let time: String = token(&mut input);
    blanks(&mut input);
    let is_time = time.strip_prefix('-').unwrap_or(&time).chars().all(|c| c.is_ascii_digit());
    let time = if time.is_empty() { None } else { Some(time.parse().ok().filter(|_| is_time)?) };
    input.is_empty().then_some((measurement, tags, fields, time))
}

fn eat(input: &mut Vec<char>, wanted: char) -> bool {
    let is_next = input.last() == Some(&wanted);
    if is_next {
        input.pop();
    }
    is_next
}

fn blanks(input: &mut Vec<char>) {
    while matches!(input.last(), Some(' ' | '\t' | '\0')) {
        input.pop();
    }
}

fn name(input: &mut Vec<char>, ends: &[char], special: &str) -> Option<String> {
    let mut name = String::new();
    while let Some(next) = input.pop() {
        match input.last() {
            Some(escaped) if next == '\\' && special.contains(*escaped) => name.extend(input.pop()),
            _ if ends.contains(&next) || next == '\n' => {
                input.push(next);
                break;
            }
            _ => name.push(next),
        }
    }
    Some(name).filter(|name| !name.is_empty())
}

fn token(input: &mut Vec<char>) -> String {
    let mut token = String::new();
    while let Some(next) = input.pop_if(|next| !matches!(next, ',' | ' ' | '\n')) {
        token.push(next);
    }
    token
}

fn value(input: &mut Vec<char>) -> Option<LineValue<'static>> {
    if !eat(input, '"') {
        return scalar(&token(input));
    }
    let mut text = String::new();
    loop {
        match (input.pop()?, input.last()) {
            ('\\', Some('"' | '\\')) => text.extend(input.pop()),
            ('"', _) => return Some(LineValue::Text(text.into())),
            (other, _) => text.push(other),
        }
    }
}

fn scalar(token: &str) -> Option<LineValue<'static>> {
    match token {
        "t" | "T" | "true" | "True" | "TRUE" => return Some(LineValue::Bool(true)),
        "f" | "F" | "false" | "False" | "FALSE" => return Some(LineValue::Bool(false)),
        _ => {}
    }
    let begins = token.starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '.');
    let token = Some(token).filter(|_| begins)?;
    if let Some(digits) = token.strip_suffix('i') {
        return digits.parse().ok().map(LineValue::I64);
    }
    if let Some(digits) = token.strip_suffix('u') {
        return digits.parse().ok().map(LineValue::U64);
    }
    let is_decimal = token.chars().all(|c| c.is_ascii_digit() || "+-.eE".contains(c));
    token.parse().ok().filter(|value: &f64| is_decimal && value.is_finite()).map(LineValue::F64)
}
