//! A bounded sample of the keys of a Redis.

use std::time::Instant;

use clients::redis::{RedisClient, RedisError};

use super::convert::number;
use crate::limits::{BIG_KEY_ELEMENTS, SAMPLED_FIELDS_MAX, SAMPLED_KEYS_MAX, SAMPLING_TIME_MAX};
use crate::value::Value;

/// The facts of a sample.
pub(super) const FACTS: [&str; 3] = ["big_keys", "hash_fields_p99", "hash_value_bytes_p99"];

/// The findings of a sample.
#[derive(Debug, Default, PartialEq)]
pub(super) struct SampledKeys {
    big_keys: u32,
    hash_fields: Vec<f64>,
    hash_value_bytes: Vec<f64>,
}

impl SampledKeys {
    /// The facts. Without any hash their sizes are 0.
    pub(super) fn facts(mut self) -> impl Iterator<Item = (String, Value)> {
        let values = [f64::from(self.big_keys), p99(&mut self.hash_fields), p99(&mut self.hash_value_bytes)];
        FACTS.into_iter().zip(values).map(|(name, value)| (name.to_owned(), Value::Number(value)))
    }
}

/// Looks at the first keys of a SCAN, up to the limits of keys and time. The order of SCAN is that of a hash table.
pub(super) fn sample(client: &mut RedisClient) -> Result<SampledKeys, RedisError> {
    let begun = Instant::now();
    let mut found = SampledKeys::default();
    let mut cursor = "0".to_owned();
    let mut keys = 0;
    loop {
        let mut answer = client.list(&["SCAN", &cursor, "COUNT", "100"])?.into_iter();
        cursor = answer.next().map(|text| String::from_utf8_lossy(&text).into_owned()).unwrap_or_default();
        for key in answer {
            if keys >= SAMPLED_KEYS_MAX || begun.elapsed() >= SAMPLING_TIME_MAX {
                return Ok(found);
            }
            keys += 1;
            // The client sends words of text.
            if let Ok(key) = String::from_utf8(key) {
                look(client, &key, &mut found)?;
            }
        }
        if cursor == "0" || cursor.is_empty() || begun.elapsed() >= SAMPLING_TIME_MAX {
            return Ok(found);
        }
    }
}

fn look(client: &mut RedisClient, key: &str, found: &mut SampledKeys) -> Result<(), RedisError> {
    let kind = client.text(&["TYPE", key])?;
    let command = match kind.as_str() {
        "hash" => "HLEN",
        "list" => "LLEN",
        "set" => "SCARD",
        "zset" => "ZCARD",
        "stream" => "XLEN",
        _ => return Ok(()),
    };
    let elements = number(&client.text(&[command, key])?).unwrap_or_default();
    if elements > BIG_KEY_ELEMENTS {
        found.big_keys += 1;
    }
    if kind == "hash" && elements > 0.0 {
        found.hash_fields.push(elements);
        if elements <= SAMPLED_FIELDS_MAX {
            // The cursor, then names and values.
            let fields = client.list(&["HSCAN", key, "0", "COUNT", "10"])?;
            let sizes = fields.iter().skip(2).step_by(2).map(|value| value.len() as f64);
            found.hash_value_bytes.extend(sizes);
        }
    }
    Ok(())
}

/// The value that all but the largest hundredth do not exceed; 0 without values.
fn p99(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    let rank = (values.len() * 99).div_ceil(100);
    rank.checked_sub(1).and_then(|index| values.get(index)).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_hundredth_does_not_count() {
        let mut values: Vec<f64> = (1..=200).map(f64::from).collect();
        assert_eq!(p99(&mut values), 198.0);
        assert_eq!((p99(&mut [7.0]), p99(&mut [])), (7.0, 0.0));
    }
}
