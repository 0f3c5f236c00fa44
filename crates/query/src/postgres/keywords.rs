//! The words of PostgreSQL's SQL, which drivers ask for with `pg_get_keywords()`.

use super::listing::Listing;

/// The function that lists the words, and the table that it stands for.
pub(super) const FUNCTION: &str = "pg_get_keywords";
pub(super) const TABLE: &str = "pg_keywords";

/// Lines of a word, its category, and whether it can be the name of a column without AS: those of PostgreSQL 15.
const WORDS: &str = include_str!("keywords.txt");

/// Adds a row for each word.
pub(super) fn list(rows: &mut Listing) {
    for line in WORDS.lines() {
        let [word, category, label] = line.split(' ').collect::<Vec<_>>()[..] else { continue };
        let is_label = label == "t";
        rows.row([
            ("word", word.into()),
            ("catcode", category.into()),
            ("barelabel", is_label.into()),
            ("catdesc", described(category).into()),
            ("baredesc", if is_label { "can be bare label" } else { "requires AS" }.into()),
        ]);
    }
}

fn described(category: &str) -> &'static str {
    match category {
        "U" => "unreserved",
        "C" => "unreserved (cannot be function or type name)",
        "T" => "reserved (can be function or type name)",
        _ => "reserved",
    }
}
