//! The block that GSN's tool `eval-queries` prints, with its labels, its number format and its figures.
//!
//! Three of its figures are not what their names say, and are printed all the same: `MB` is 2^20 bits; the sum of `Tuple Rate` adds rates of questions that
//! ran at once, so it is not a rate of the system; `Field Rate` divides the number of columns by the time.

use std::fmt::Write as _;

use super::tally::Answered;

/// The block. `seconds` is the time of all questions together.
pub(super) fn block(url: &str, answers: &[Answered], seconds: f64) -> String {
    let of = |value: &dyn Fn(&Answered) -> f64| -> Vec<f64> { answers.iter().map(value).collect() };
    let seconds_of = |one: &Answered| one.millis as f64 / 1_000.0;
    let megabits = |one: &Answered| one.line_bytes as f64 * 8.0 / 1_048_576.0;
    let mut text = String::new();
    // The tool keeps this time as a number of 32 bits.
    let eval_duration = f64::from(((seconds * 1_000.0).round() / 1_000.0) as f32);
    let lines = [
        ("Tuples       ", of(&|one| one.rows as f64), "no unit"),
        ("Fields       ", of(&|one| one.fields as f64), "no unit"),
        ("Raw Data     ", of(&megabits), "MB"),
        ("Download time", of(&seconds_of), "s"),
        ("Tuple Rate   ", of(&|one| one.rows as f64 / seconds_of(one)), "tuple/s"),
        ("Field Rate   ", of(&|one| one.fields as f64 / seconds_of(one)), "field/s"),
        ("Data Rate    ", of(&|one| megabits(one) / seconds_of(one)), "MB/s"),
    ];
    let _ = write!(
        text,
        "------ GSN Queries Result --------\n| URL: {url}\n| Eval duration: {} [s]\n| Nb Queries   : {}\n",
        number(eval_duration),
        answers.len()
    );
    for (label, values, unit) in lines {
        let _ = writeln!(text, "| {label}: {} [{unit}]", statistics(&values));
    }
    text.push_str("-----------------------------------\n");
    text
}

fn statistics(values: &[f64]) -> String {
    let count = values.len() as f64;
    let sum: f64 = values.iter().sum();
    let mean = sum / count;
    // The variance of a sample; that of one value is zero in the tool's library.
    let variance = match values.len() {
        0 => f64::NAN,
        1 => 0.0,
        _ => values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0),
    };
    let least = values.iter().copied().fold(f64::NAN, f64::min);
    let most = values.iter().copied().fold(f64::NAN, f64::max);
    format!(
        "sum:{}, min:{}, max:{}, mean:{}, var:{}",
        number(sum),
        number(least),
        number(most),
        number(mean),
        number(variance)
    )
}

/// A number as Java's `DecimalFormat("###.000")` writes it: three decimals, no zero before the point.
fn number(value: f64) -> String {
    if value.is_nan() {
        return "\u{fffd}".to_owned();
    }
    let sign = if value.is_sign_negative() { "-" } else { "" };
    if value.is_infinite() {
        return format!("{sign}\u{221e}");
    }
    let text = format!("{:.3}", value.abs());
    format!("{sign}{}", text.strip_prefix('0').filter(|rest| rest.starts_with('.')).unwrap_or(&text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(rows: u64, fields: u64, line_bytes: u64, millis: u64) -> Answered {
        Answered { sensor: 0, wanted: 5_000, rows, fields, line_bytes, body_bytes: line_bytes + rows, millis }
    }

    #[test]
    fn numbers_have_three_decimals_and_no_leading_zero() {
        for (value, text) in [
            (98_637.0, "98637.000"),
            (0.748, ".748"),
            (0.0, ".000"),
            (-0.25, "-.250"),
            (10.5, "10.500"),
            (f64::NAN, "\u{fffd}"),
            (f64::INFINITY, "\u{221e}"),
        ] {
            assert_eq!(number(value), text);
        }
    }

    #[test]
    fn the_block_is_that_of_the_tool() {
        let answers = [answered(5_000, 8, 1_310_720, 2_500), answered(3_637, 31, 262_144, 500)];
        let expected = "\
------ GSN Queries Result --------
| URL: http://h:22001
| Eval duration: 2.501 [s]
| Nb Queries   : 2
| Tuples       : sum:8637.000, min:3637.000, max:5000.000, mean:4318.500, var:928884.500 [no unit]
| Fields       : sum:39.000, min:8.000, max:31.000, mean:19.500, var:264.500 [no unit]
| Raw Data     : sum:12.000, min:2.000, max:10.000, mean:6.000, var:32.000 [MB]
| Download time: sum:3.000, min:.500, max:2.500, mean:1.500, var:2.000 [s]
| Tuple Rate   : sum:9274.000, min:2000.000, max:7274.000, mean:4637.000, var:13907538.000 [tuple/s]
| Field Rate   : sum:65.200, min:3.200, max:62.000, mean:32.600, var:1728.720 [field/s]
| Data Rate    : sum:8.000, min:4.000, max:4.000, mean:4.000, var:.000 [MB/s]
-----------------------------------
";
        assert_eq!(block("http://h:22001", &answers, 2.501), expected);
    }
}
