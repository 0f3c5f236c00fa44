//! Words of refusals: lists of values, and the name that a client may have meant.

use std::borrow::Cow;

use crate::error::ApiError;

/// The label of refusals of what is not described.
pub(super) const NOT_DESCRIBED: &str = "not_described";

/// Most characters of a client's text in a refusal.
const SHOWN_CHARACTERS_MAX: usize = 100;

/// 400: a request has what its operation does not describe.
pub(super) fn not_described(message: String) -> ApiError {
    ApiError { label: NOT_DESCRIBED, ..ApiError::argument(message) }
}

/// The beginning of a text of a client.
pub(super) fn shown(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(SHOWN_CHARACTERS_MAX) {
        Some((end, _)) => format!("{}...", &text[..end]).into(),
        None => text.into(),
    }
}

/// `A, B or C`.
pub(super) fn choices(values: &[impl AsRef<str>]) -> String {
    match values {
        [] => String::new(),
        [one] => one.as_ref().to_owned(),
        [first @ .., last] => {
            let first: Vec<&str> = first.iter().map(AsRef::as_ref).collect();
            format!("{} or {}", first.join(", "), last.as_ref())
        }
    }
}

/// A remedy for an unknown name: a similar one of the known names, or else another remedy.
pub(super) fn hint(unknown: &str, known: &[&str], otherwise: &str) -> String {
    match similar(unknown, known) {
        Some(name) => format!("did you mean {name:?}?"),
        None => otherwise.to_owned(),
    }
}

/// The known name that differs least from an unknown one, if only a few letters differ.
fn similar<'a>(unknown: &str, known: &[&'a str]) -> Option<&'a str> {
    let length = unknown.chars().count();
    if length > SHOWN_CHARACTERS_MAX {
        return None;
    }
    let (lower, most) = (unknown.to_lowercase(), 1 + length / 4);
    let distances = known.iter().map(|name| (distance(&lower, &name.to_lowercase()), *name));
    let (distance, name) = distances.min_by_key(|(distance, name)| (*distance, *name))?;
    (distance <= most && distance < length).then_some(name)
}

/// How many letters must be added, removed or replaced to get one text from the other; two exchanged neighbours count two.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (above, letter) in one.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = above + 1;
        for (column, of_other) in other.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *of_other);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(row[column] + 1).min(diagonal + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_similar_name_is_found_and_no_other() {
        let known = ["label", "name", "type", "deviceProfileId", "additionalInfo"];
        for (unknown, meant) in [
            ("lable", Some("label")),
            ("Label", Some("label")),
            ("deviceProfileID", Some("deviceProfileId")),
            ("deviceProfile", Some("deviceProfileId")),
            ("additionalinf", Some("additionalInfo")),
            ("nonsense", None),
            ("x", None),
            ("", None),
        ] {
            assert_eq!(similar(unknown, &known), meant, "{unknown}");
        }
        assert_eq!(similar(&"label".repeat(100), &known), None);
    }

    #[test]
    fn long_texts_are_cut_and_lists_have_an_or() {
        assert_eq!(shown("ä"), "ä");
        assert_eq!(shown(&"ä".repeat(200)).chars().count(), 103);
        assert_eq!(choices(&["A", "B", "C"]), "A, B or C");
        assert_eq!(choices(&["A"]), "A");
    }
}
