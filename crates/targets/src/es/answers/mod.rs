//! Answers of bulk and search requests. They are read field by field, without a tree: a bulk answer has a megabyte.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

/// The longest part of a server's error text to keep.
const ERROR_CHARS_MAX: usize = 160;

/// The result of a bulk request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct BulkAnswer {
    /// Documents that were stored.
    pub(super) stored: u32,
    /// Documents that were refused.
    pub(super) refused: u32,
    /// The first refusal.
    pub(super) reason: Option<String>,
}

/// The result of a search request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct SearchAnswer {
    /// The number of matching documents.
    pub(super) total: u64,
    /// Whether there may be more than `total`: since version 7 a server stops counting at 10,000.
    pub(super) is_lower_bound: bool,
    /// The number of returned documents.
    pub(super) rows: u32,
    /// The number of documents in all groups of the aggregation, if there is one.
    pub(super) grouped: Option<u64>,
    /// The identifier for the next page.
    pub(super) scroll_id: Option<String>,
}

/// Reads the body of a successful bulk answer. An item with a status of 300 or more is a refused document.
pub(super) fn bulk(body: &[u8]) -> Result<BulkAnswer, String> {
    let raw: RawBulk = serde_json::from_slice(body).map_err(|error| format!("no bulk answer: {error}"))?;
    let answer = raw.items.0;
    if !raw.errors && answer.refused > 0 {
        return Err(format!("`errors` is false, but {} items failed", answer.refused));
    }
    if raw.errors && answer.refused == 0 {
        return Err("`errors` is true, but no item failed".to_owned());
    }
    Ok(answer)
}

/// Reads the body of a successful search or scroll answer. Partial results are an error.
pub(super) fn search(body: &[u8]) -> Result<SearchAnswer, String> {
    let raw: RawSearch =
        serde_json::from_slice(body).map_err(|error| format!("no search answer: {error}"))?;
    if raw.timed_out {
        return Err("the search timed out".to_owned());
    }
    if raw.shards.failed > 0 {
        return Err(format!("{} shards failed", raw.shards.failed));
    }
    let grouped = raw.aggregations.map(|all| {
        let terms = all.country_population;
        terms.sum_other_doc_count + terms.buckets.iter().map(|bucket| bucket.doc_count).sum::<u64>()
    });
    Ok(SearchAnswer {
        total: raw.hits.total.number,
        is_lower_bound: raw.hits.total.is_lower_bound,
        rows: raw.hits.hits.0,
        grouped,
        scroll_id: raw.scroll_id,
    })
}

/// The reason of an unsuccessful answer: its status, and the type and reason of the error in its body.
pub(super) fn refusal(status: u16, body: &[u8]) -> String {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    let error = &body["error"];
    match (error["type"].as_str(), error["reason"].as_str()) {
        (Some(kind), Some(reason)) => cut(&format!("status {status}: {kind}: {reason}")),
        (Some(kind), None) => cut(&format!("status {status}: {kind}")),
        _ => match error.as_str() {
            Some(text) => cut(&format!("status {status}: {text}")),
            None => format!("status {status}"),
        },
    }
}

fn cut(text: &str) -> String {
    text.chars().take(ERROR_CHARS_MAX).collect()
}

#[derive(Deserialize)]
struct RawBulk {
    errors: bool,
    items: Items,
}

#[derive(Deserialize)]
struct RawSearch {
    timed_out: bool,
    #[serde(rename = "_shards")]
    shards: Shards,
    hits: RawHits,
    aggregations: Option<RawAggregations>,
    #[serde(rename = "_scroll_id")]
    scroll_id: Option<String>,
}

#[derive(Deserialize)]
struct Shards {
    failed: u32,
}

#[derive(Deserialize)]
struct RawHits {
    total: Total,
    hits: Rows,
}

#[derive(Deserialize)]
struct RawAggregations {
    country_population: RawTerms,
}

#[derive(Deserialize)]
struct RawTerms {
    sum_other_doc_count: u64,
    buckets: Vec<Bucket>,
}

#[derive(Deserialize)]
struct Bucket {
    doc_count: u64,
}

/// The number of elements of a list.
struct Rows(u32);

impl<'de> Deserialize<'de> for Rows {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Count;
        impl<'de> Visitor<'de> for Count {
            type Value = Rows;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of documents")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Rows, A::Error> {
                let mut count = 0;
                while list.next_element::<IgnoredAny>()?.is_some() {
                    count += 1;
                }
                Ok(Rows(count))
            }
        }
        deserializer.deserialize_seq(Count)
    }
}

/// The number of hits: a number until version 6, `{"value": 10000, "relation": "gte"}` since 7.
struct Total {
    number: u64,
    is_lower_bound: bool,
}

impl<'de> Deserialize<'de> for Total {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Written {
            value: u64,
            relation: String,
        }
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Total;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number of hits")
            }

            fn visit_u64<E>(self, number: u64) -> Result<Total, E> {
                Ok(Total { number, is_lower_bound: false })
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Total, A::Error> {
                let written = Written::deserialize(serde::de::value::MapAccessDeserializer::new(map))?;
                match written.relation.as_str() {
                    "eq" => Ok(Total { number: written.value, is_lower_bound: false }),
                    "gte" => Ok(Total { number: written.value, is_lower_bound: true }),
                    other => Err(A::Error::custom(format!("relation `{other}` of the hits"))),
                }
            }
        }
        deserializer.deserialize_any(Either)
    }
}

/// The items of a bulk answer, counted.
struct Items(BulkAnswer);

impl<'de> Deserialize<'de> for Items {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Count;
        impl<'de> Visitor<'de> for Count {
            type Value = Items;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of items")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Items, A::Error> {
                let mut answer = BulkAnswer::default();
                while let Some(Item(outcome)) = list.next_element()? {
                    if outcome.status < 300 {
                        answer.stored += 1;
                    } else {
                        answer.refused += 1;
                        answer.reason.get_or_insert_with(|| outcome.reason());
                    }
                }
                Ok(Items(answer))
            }
        }
        deserializer.deserialize_seq(Count)
    }
}

/// An item: `{"index": {"status": 201, ...}}`, with the action as its only key.
struct Item(ItemOutcome);

#[derive(Deserialize)]
struct ItemOutcome {
    status: u16,
    #[serde(default)]
    error: Option<Value>,
}

impl ItemOutcome {
    fn reason(&self) -> String {
        let error = self.error.as_ref();
        let text = |key: &str| error.and_then(|error| error[key].as_str()).unwrap_or_default();
        cut(&format!("document refused: status {}: {}: {}", self.status, text("type"), text("reason")))
    }
}

impl<'de> Deserialize<'de> for Item {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct One;
        impl<'de> Visitor<'de> for One {
            type Value = Item;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an item with one action")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Item, A::Error> {
                let Some((IgnoredAny, outcome)) = map.next_entry()? else {
                    return Err(A::Error::custom("an item without an action"));
                };
                match map.next_key::<IgnoredAny>()? {
                    None => Ok(Item(outcome)),
                    Some(_) => Err(A::Error::custom("an item with two actions")),
                }
            }
        }
        deserializer.deserialize_map(One)
    }
}

#[cfg(test)]
mod tests;
