//! The result of a chain, as text for people and as JSON for programs.

use bench::capacity::Answer;
use serde::Serialize;

use super::{Bottleneck, Range, narrowest};

/// The heads of the columns.
const HEADS: [&str; 4] = ["layer", "operations/s", "operations/message", "messages/s"];

/// The capacities of all layers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ChainReport {
    /// The layers in the order of the chain.
    pub layers: Vec<LayerReport>,
    /// The narrowest layer.
    pub narrowest: Bottleneck,
    /// The same as text.
    pub sentence: String,
}

/// The capacity of one layer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LayerReport {
    /// The name of the layer.
    pub name: String,
    /// The operations of this layer that one message causes.
    pub operations_per_message: f64,
    /// The capacity, or the reason why it is unknown.
    #[serde(flatten)]
    pub measured: Measured,
}

/// The outcome of one layer.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Measured {
    /// The search has an answer.
    Capacity {
        /// The answer, in operations of this layer.
        answer: Answer,
        /// The answer, in messages of the chain.
        messages_per_s: Range,
    },
    /// The search failed.
    Failed { because: String },
}

impl LayerReport {
    fn range(&self) -> Option<Range> {
        match &self.measured {
            Measured::Capacity { messages_per_s, .. } => Some(*messages_per_s),
            Measured::Failed { .. } => None,
        }
    }

    fn row(&self) -> [String; 4] {
        let ratio = self.operations_per_message.to_string();
        match &self.measured {
            Measured::Capacity { answer, messages_per_s } => {
                [self.name.clone(), rates(Range::of(answer, 1.0)), ratio, rates(*messages_per_s)]
            }
            Measured::Failed { .. } => [self.name.clone(), "unknown".to_owned(), ratio, "unknown".to_owned()],
        }
    }
}

impl ChainReport {
    /// Compares the layers.
    pub fn new(layers: Vec<LayerReport>) -> Self {
        let ranges: Vec<Option<Range>> = layers.iter().map(LayerReport::range).collect();
        let narrowest = narrowest(&ranges);
        let sentence = sentence(&layers, &ranges, &narrowest);
        Self { layers, narrowest, sentence }
    }

    /// Whether the narrowest layer is known.
    pub fn is_certain(&self) -> bool {
        matches!(self.narrowest, Bottleneck::Certain { .. })
    }

    /// The report as JSON.
    pub fn json(&self) -> String {
        serde_json::to_string_pretty(self).expect("BUG: a report is plain JSON")
    }

    /// The report as text: a table, the failed layers, and the narrowest.
    pub fn text(&self) -> String {
        let heads = HEADS.map(str::to_owned);
        let rows: Vec<[String; 4]> =
            std::iter::once(heads).chain(self.layers.iter().map(LayerReport::row)).collect();
        let widths: [usize; 4] = std::array::from_fn(|column| {
            rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0)
        });
        let [name, operations, ratio, messages] = widths;
        let line = |row: &[String; 4]| {
            let [a, b, c, d] = row;
            format!("{a:name$}  {b:>operations$}  {c:>ratio$}  {d:>messages$}")
        };
        let mut lines: Vec<String> = rows.iter().map(line).collect();
        for layer in &self.layers {
            if let Measured::Failed { because } = &layer.measured {
                lines.push(format!("{} failed: {because}", layer.name));
            }
        }
        lines.push(self.sentence.clone());
        lines.join("\n")
    }
}

fn sentence(layers: &[LayerReport], ranges: &[Option<Range>], narrowest: &Bottleneck) -> String {
    let names = |indexes: &[usize]| {
        indexes.iter().map(|index| layers[*index].name.as_str()).collect::<Vec<_>>().join(", ")
    };
    match narrowest {
        Bottleneck::Certain { layer } => {
            let range = ranges[*layer].map(rates).unwrap_or_default();
            format!("narrowest: {}, {range} messages/s", layers[*layer].name)
        }
        Bottleneck::OneOf { layers: candidates } => {
            let unknown: Vec<usize> = (0..ranges.len()).filter(|index| ranges[*index].is_none()).collect();
            let because = if unknown.is_empty() {
                "their intervals overlap or have no end".to_owned()
            } else {
                format!("no capacity is known of {}", names(&unknown))
            };
            format!("narrowest: cannot tell, one of {} ({because})", names(candidates))
        }
    }
}

/// A range of rates as text.
fn rates(range: Range) -> String {
    match range.high {
        Some(high) if range.low == 0.0 => format!("below {}", rate(high)),
        Some(high) => format!("{} to {}", rate(range.low), rate(high)),
        None => format!("at least {}", rate(range.low)),
    }
}

/// A rate with commas between thousands; small ones with three digits behind the point.
fn rate(per_s: f64) -> String {
    if per_s < 100.0 {
        return format!("{}", (per_s * 1e3).round() / 1e3);
    }
    let digits = format!("{per_s:.0}");
    let separated = digits.char_indices().map(|(index, digit)| {
        let is_thousand = index > 0 && (digits.len() - index).is_multiple_of(3);
        if is_thousand { format!(",{digit}") } else { digit.to_string() }
    });
    separated.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layer(name: &str, low: f64, high: f64, operations_per_message: f64) -> LayerReport {
        let answer = Answer::Found {
            rate_per_s: f64::midpoint(low, high),
            interval: load::statistics::Interval { low, high },
            safe_per_s: low,
            trials: 12,
            precise: true,
        };
        let messages_per_s = Range::of(&answer, operations_per_message);
        let measured = Measured::Capacity { answer, messages_per_s };
        LayerReport { name: name.to_owned(), operations_per_message, measured }
    }

    #[test]
    fn the_table_is_in_the_order_of_the_chain_and_the_narrowest_is_below() {
        let report = ChainReport::new(vec![
            layer("gateway", 41_000.0, 43_000.0, 1.0),
            layer("database", 123.0, 131.0, 0.01),
        ]);
        let expected = "\
layer         operations/s  operations/message        messages/s
gateway   41,000 to 43,000                   1  41,000 to 43,000
database        123 to 131                0.01  12,300 to 13,100
narrowest: database, 12,300 to 13,100 messages/s";
        assert_eq!(report.text(), expected);
        assert!(report.is_certain());
        let json: serde_json::Value = serde_json::from_str(&report.json()).unwrap();
        assert_eq!(json["narrowest"]["layer"], 1);
        assert_eq!(json["layers"][0]["messages_per_s"]["low"], 41_000.0);
    }

    #[test]
    fn a_failed_layer_is_reported_with_its_cause() {
        let measured = Measured::Failed { because: "connection refused".to_owned() };
        let failed = LayerReport { name: "search".to_owned(), operations_per_message: 1.0, measured };
        let report = ChainReport::new(vec![layer("gateway", 10.0, 20.0, 1.0), failed]);
        let text = report.text();
        assert!(text.contains("search failed: connection refused"), "{text}");
        assert!(
            text.ends_with("cannot tell, one of gateway, search (no capacity is known of search)"),
            "{text}"
        );
        assert!(!report.is_certain());
    }

    #[test]
    fn rates_are_readable() {
        let written = [0.25, 99.5, 100.0, 1_234.4, 12_300.0, 1_234_567.0].map(rate);
        assert_eq!(written, ["0.25", "99.5", "100", "1,234", "12,300", "1,234,567"]);
    }
}
