//! The text of `/metrics`.
//!
//! Source: the text format of OpenMetrics 1.0: `name{labels} value`, and lines of comments with `#`.

use std::collections::BTreeMap;

/// The label whose values have sums of their own.
const REASON: &str = "reason=\"";

/// The values by name, without the prefix `tacho_` and without labels: the sum of all labels. Values with a label `reason` are
/// also added by reason, as `name:reason`.
pub(super) fn read(text: &str) -> BTreeMap<String, f64> {
    let mut sums = BTreeMap::new();
    for line in text.lines() {
        let Some((series, value)) = line.strip_prefix("tacho_").and_then(|line| line.rsplit_once(' ')) else {
            continue;
        };
        let name = series.split('{').next().unwrap_or(series);
        let Ok(value) = value.parse::<f64>() else { continue };
        *sums.entry(name.to_owned()).or_default() += value;
        let reason = series.split_once(REASON).and_then(|(_, rest)| rest.split('"').next());
        if let Some(reason) = reason {
            *sums.entry(format!("{name}:{reason}")).or_default() += value;
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_all_labels_are_added() {
        let text = "# HELP tacho_messages Messages.\n# TYPE tacho_messages counter\n\
            tacho_messages_total{door=\"mqtt\"} 3\ntacho_messages_total{door=\"http\"} 4\n\
            tacho_refusals_total{door=\"mqtt\",reason=\"full\"} 5\ntacho_refusals_total{door=\"http\",reason=\"full\"} 1\n\
            tacho_refusals_total{door=\"http\",reason=\"token\"} 2\ntacho_memtable_bytes 42\ntacho_x{a=\"b c\"} NaN?\nother 1\n# EOF\n";
        let values = read(text);
        assert_eq!((values["messages_total"], values["memtable_bytes"], values.len()), (7.0, 42.0, 5));
        assert_eq!((values["refusals_total"], values["refusals_total:full"]), (8.0, 6.0));
    }
}
