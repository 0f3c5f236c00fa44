//! The size of each function's result, and its work.

use std::ops::Add;

use super::size::Size;

/// How the result and the work of a function grow.
#[derive(Clone, Copy)]
pub(super) enum Class {
    /// The size of the result does not depend on the arguments, and the work is proportional to their bytes. Or the function
    /// chooses among its arguments in place of an operator (CASE) and makes nothing.
    Fixed,
    /// The formula computes the bound of a call from the sizes of the arguments and the number of rows.
    Grows(fn(&[Size], u64) -> Bound),
    /// Nothing is known about the function, or it makes lists of any length from a number. `generate_series` and `range` in FROM
    /// return rows batch by batch and are offered.
    LeftOut,
}

/// The most that a call makes and does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Bound {
    /// Bytes of results.
    pub(super) bytes: u64,
    /// Steps of work of about a nanosecond each, such as a compared byte or character.
    pub(super) work: u64,
}

impl Add for Bound {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { bytes: self.bytes.saturating_add(other.bytes), work: self.work.saturating_add(other.work) }
    }
}

/// Returns the class of a function.
pub(super) fn of(name: &str) -> Class {
    CLASSES.iter().find(|(names, _)| names.contains(&name)).map_or(Class::LeftOut, |(_, class)| *class)
}

/// All functions that have a class.
#[cfg(test)]
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    CLASSES.iter().flat_map(|(names, _)| names.iter().copied())
}

use Class::{Fixed, Grows, LeftOut};

const CLASSES: &[(&[&str], Class)] = &[
    (
        &["repeat"],
        Grows(|args, rows| made(args[0].longest.saturating_mul(args[1].number).saturating_mul(rows))),
    ),
    // A character has up to four bytes.
    (
        &["lpad", "rpad"],
        Grows(|args, rows| made(total(args).saturating_add(4 * rows.saturating_mul(args[1].number)))),
    ),
    // Each position of the text may be replaced.
    (&["replace"], Grows(|args, rows| made(replaced(args, rows, args[2].longest)))),
    (
        &["regexp_replace"],
        Grows(|args, rows| Bound { bytes: replaced(args, rows, args[2].longest), ..regex(args, rows) }),
    ),
    (
        &[
            "regexp_like",
            "regexp_count",
            "regexp_substr",
            "regexp_instr",
            "~",
            "~*",
            "!~",
            "!~*",
            "~~",
            "~~*",
            "!~~",
            "!~~*",
            "substring_of_regex",
            "posix_regex",
            "similar_to_regex",
        ],
        Grows(regex),
    ),
    // A list of matches.
    (&["regexp_match"], Grows(|args, rows| Bound { bytes: 40 * total(args), ..regex(args, rows) })),
    (&["string_to_array"], Grows(|args, _| made(40 * total(args)))),
    (
        &["concat_ws"],
        Grows(|args, rows| {
            let separators = args[0].longest.saturating_mul(args.len() as u64).saturating_mul(rows);
            made(total(args).saturating_add(separators))
        }),
    ),
    (
        &["array_to_string"],
        Grows(|args, _| {
            let between: u64 = args[1..].iter().map(|text| text.longest).sum();
            // The longest number is 1e308 without its exponent.
            let written = args[0].elements.saturating_mul(between.saturating_add(330));
            made(args[0].total.saturating_mul(4).saturating_add(written))
        }),
    ),
    (
        &["array_replace", "array_replace_n", "array_replace_all"],
        Grows(|args, _| made(args[0].total.saturating_add(args[0].elements.saturating_mul(args[2].longest)))),
    ),
    // The shorter lists are padded.
    (
        &["arrays_zip"],
        Grows(|args, _| {
            let elements: u64 = args.iter().map(|list| list.elements).sum();
            made(total(args).saturating_add(elements.saturating_mul(16)).saturating_mul(args.len() as u64))
        }),
    ),
    // A table of the characters of one text against those of the other.
    (
        &["levenshtein"],
        Grows(|args, _| Bound {
            bytes: args[0].longest.saturating_add(args[1].longest).saturating_mul(16),
            work: args[0].total.saturating_mul(args[1].longest),
        }),
    ),
    // It compares at each position with the same beginning, sixteen bytes in a step.
    (
        &["strpos", "find_in_set"],
        Grows(|args, _| Bound { work: args[0].total.saturating_mul(1 + args[1].longest / 16), bytes: 0 }),
    ),
    // Compares each character with each one of the set.
    (
        &["btrim", "ltrim", "rtrim"],
        Grows(|args, _| {
            let set = args.get(1).map_or(1, |set| set.longest);
            Bound { bytes: args[0].total, work: args[0].total.saturating_mul(1 + set / 4) }
        }),
    ),
    (
        &["array_contains_all", "array_overlaps", "array_has_all", "array_has_any"],
        Grows(|args, rows| {
            let pairs = args[0].elements.saturating_mul(args[1].elements);
            let work = if rows > 1 { pairs } else { pairs.saturating_mul(4) };
            Bound { bytes: 3 * total(args), work }
        }),
    ),
    (&["to_char"], Grows(|args, _| made(32 * total(args)))),
    // Their results are small. A constant argument is copied for each row.
    (
        &[
            "contains",
            "ends_with",
            "starts_with",
            "to_timestamp",
            "to_timestamp_micros",
            "to_timestamp_millis",
            "to_timestamp_nanos",
            "to_timestamp_seconds",
            "to_date",
            "to_time",
            "array_has",
            "array_position",
            "array_distance",
            "cosine_distance",
            "inner_product",
        ],
        Grows(|args, _| made(total(args))),
    ),
    // Text made from text, and lists of lists: at most a few times the size of the arguments.
    (
        &[
            "||",
            "concat",
            "translate",
            "upper",
            "lower",
            "initcap",
            "reverse",
            "overlay",
            "left",
            "right",
            "substr",
            "substr_index",
            "split_part",
            "chr",
            "encode",
            "decode",
            "json_get",
            "make_array",
            "array_append",
            "array_prepend",
            "array_concat",
            "array_compact",
            "array_distinct",
            "array_except",
            "array_intersect",
            "array_union",
            "array_sort",
            "array_reverse",
            "array_slice",
            "array_remove",
            "array_remove_n",
            "array_remove_all",
            "array_pop_back",
            "array_pop_front",
            "array_positions",
            "array_normalize",
            "array_scale",
            "array_add",
            "array_subtract",
            "flatten",
            "map",
            "map_entries",
            "map_extract",
            "map_keys",
            "map_values",
            "named_struct",
            "struct",
            "nullif",
            "greatest",
            "least",
        ],
        Grows(|args, rows| made(total(args).saturating_mul(8).saturating_add(64 * rows))),
    ),
    (
        &[
            "age",
            "array_lower",
            "array_upper",
            "date_bin_gapfill",
            "date_trunc_in_zone",
            "date_trunc_of_any",
            "datepart",
            "kept\u{1}cast",
            "div",
            "isfinite",
            "justify_days",
            "justify_hours",
            "justify_interval",
            "make_interval",
            "make_timestamp",
            "make_timestamptz",
            "mod",
            "pow",
            "round_time",
            "sign",
            "time_bucket",
            "times_overlap",
            "time_bucket_gapfill",
            "timezone",
            "to_number",
            "width_bucket",
            "abs",
            "acos",
            "acosh",
            "array_any_value",
            "array_avg",
            "array_element",
            "array_length",
            "array_max",
            "array_min",
            "array_ndims",
            "array_product",
            "array_sum",
            "arrow_typeof",
            "ascii",
            "asin",
            "asinh",
            "atan",
            "atan2",
            "atanh",
            "bit_length",
            "cardinality",
            "cbrt",
            "ceil",
            "character_length",
            "coalesce",
            "cos",
            "cosh",
            "cot",
            "current_date",
            "current_time",
            "date_bin",
            "date_part",
            "date_trunc",
            "degrees",
            "empty",
            "exp",
            "factorial",
            "floor",
            "from_unixtime",
            "gcd",
            "get_field",
            "isnan",
            "iszero",
            "lcm",
            "ln",
            "log",
            "log10",
            "log2",
            "make_date",
            "make_time",
            "nanvl",
            "now",
            "nvl",
            "nvl2",
            "octet_length",
            "pi",
            "power",
            "radians",
            "random",
            "round",
            "signum",
            "sin",
            "sinh",
            "sqrt",
            "tan",
            "tanh",
            "to_hex",
            "to_local_time",
            "to_unixtime",
            "trunc",
            "uuid",
            "version",
        ],
        Fixed,
    ),
    (
        &[
            "array_dims",
            "array_repeat",
            "array_resize",
            "generate_series",
            "range",
            "arrow_cast",
            "arrow_try_cast",
            "cast_to_type",
            "try_cast_to_type",
            "arrow_field",
            "arrow_metadata",
            "with_metadata",
            "union_extract",
            "union_tag",
            "input_file_name",
            "file_row_index",
        ],
        LeftOut,
    ),
];

fn made(bytes: u64) -> Bound {
    Bound { bytes, work: bytes }
}

fn total(args: &[Size]) -> u64 {
    args.iter().fold(0, |sum, arg| sum.saturating_add(arg.total))
}

fn replaced(args: &[Size], rows: u64, replacement: u64) -> u64 {
    args[0].total.saturating_add(args[0].total.saturating_add(rows).saturating_mul(replacement))
}

/// A pattern is compiled once for all rows, or for each row. The work on a text is bounded where it is matched.
fn regex(args: &[Size], rows: u64) -> Bound {
    const COMPILED: u64 = 1_000_000;
    let pattern = args.get(1).unwrap_or(&args[0]);
    let compiled = if pattern.is_constant { COMPILED } else { rows.saturating_mul(COMPILED) };
    Bound { bytes: total(args), work: total(args).saturating_add(compiled) }
}
