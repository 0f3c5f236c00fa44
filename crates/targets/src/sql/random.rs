//! sysbench's `select_random_points` and `select_random_ranges`: one statement on `sbtest1` with values from the
//! connection's own part of `k`.

use clients::sql::{Client, Dialect, Effect, SqlError, Statement, Type, Value};
use load::dataset::{Distribution, Random, Sampler};

use super::oltp::{OltpScript, Protocol, Transaction};

/// The statement of one class on one connection.
#[derive(Debug)]
pub(super) struct RandomSelect {
    segment: Sampler,
    /// `None` if it is sent as text.
    prepared: Option<Statement>,
}

impl RandomSelect {
    /// Prepares the statement; `None` for other transactions.
    pub(super) fn open(
        client: &mut Client,
        dialect: Dialect,
        transaction: &Transaction,
        segment: Sampler,
    ) -> Result<Option<Self>, SqlError> {
        if !transaction.kind.is_random_select() {
            return Ok(None);
        }
        let places: Vec<String> = (1..=places(transaction))
            .map(|number| match dialect {
                Dialect::Mysql => "?".to_owned(),
                Dialect::Postgres => format!("${number}"),
            })
            .collect();
        let prepared = match transaction.protocol {
            Protocol::Text => None,
            Protocol::Prepared => {
                client.prepare(&statement(transaction.kind, &places), &vec![Type::Int; places.len()])?
            }
        };
        Ok(Some(Self { segment, prepared }))
    }

    pub(super) fn run(
        &self,
        client: &mut Client,
        transaction: &Transaction,
        random: &mut Random,
    ) -> Result<Effect, SqlError> {
        let values = values(transaction, &self.segment, random);
        match self.prepared {
            Some(prepared) => {
                let values: Vec<Value<'_>> = values.into_iter().map(Value::Int).collect();
                client.execute(prepared, &values)
            }
            None => {
                let values: Vec<String> = values.iter().map(i32::to_string).collect();
                client.run(statement(transaction.kind, &values).as_bytes())
            }
        }
    }
}

/// The part of `k` of a connection. The range is divided by the number of connections; the last value of each part is
/// the first of the next.
pub(super) fn segment(
    distribution: &Distribution,
    table_size: u32,
    number: u32,
    connections: u32,
) -> Sampler {
    let connections = u64::from(connections.max(1));
    let at = |number: u64| u64::from(table_size) * number / connections;
    let number = u64::from(number) % connections;
    distribution.over(at(number), at(number + 1))
}

/// The number of values of one statement.
fn places(transaction: &Transaction) -> u32 {
    match transaction.kind {
        OltpScript::SelectRandomRanges => 2 * transaction.number_of_ranges,
        _ => transaction.random_points,
    }
}

fn values(transaction: &Transaction, segment: &Sampler, random: &mut Random) -> Vec<i32> {
    let draw = |random: &mut Random| segment.sample(random) as i32;
    match transaction.kind {
        OltpScript::SelectRandomRanges => (0..transaction.number_of_ranges)
            .flat_map(|_| {
                let first = draw(random);
                [first, first.saturating_add(transaction.delta as i32)]
            })
            .collect(),
        _ => (0..transaction.random_points).map(|_| draw(random)).collect(),
    }
}

fn statement(kind: OltpScript, values: &[String]) -> String {
    match kind {
        OltpScript::SelectRandomRanges => {
            let ranges: Vec<String> =
                values.chunks(2).map(|pair| format!("k BETWEEN {} AND {}", pair[0], pair[1])).collect();
            format!("SELECT count(k) FROM sbtest1 WHERE {}", ranges.join(" OR "))
        }
        _ => format!("SELECT id, k, c, pad FROM sbtest1 WHERE k IN ({})", values.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_have_a_place_for_each_value() {
        let texts = |values: &[i32]| values.iter().map(i32::to_string).collect::<Vec<_>>();
        assert_eq!(
            statement(OltpScript::SelectRandomPoints, &texts(&[4, 5, 6])),
            "SELECT id, k, c, pad FROM sbtest1 WHERE k IN (4, 5, 6)"
        );
        assert_eq!(
            statement(OltpScript::SelectRandomRanges, &texts(&[4, 9, 6, 11])),
            "SELECT count(k) FROM sbtest1 WHERE k BETWEEN 4 AND 9 OR k BETWEEN 6 AND 11"
        );
    }

    #[test]
    fn values_lie_in_the_part_of_the_connection() {
        let points = Transaction::of(OltpScript::SelectRandomPoints);
        let ranges = Transaction::of(OltpScript::SelectRandomRanges);
        let mut random = Random::new(3);
        for (number, part) in [(0, 0..=250), (1, 250..=500), (3, 750..=1_000), (4, 0..=250)] {
            let segment = segment(&Distribution::Uniform, 1_000, number, 4);
            for _ in 0..100 {
                let values = values(&points, &segment, &mut random);
                assert_eq!(values.len() as u32, places(&points));
                assert!(values.iter().all(|value| part.contains(value)), "{number}: {values:?}");
            }
            let values = values(&ranges, &segment, &mut random);
            assert_eq!(values.len() as u32, places(&ranges));
            assert!(values.chunks(2).all(|pair| part.contains(&pair[0]) && pair[1] == pair[0] + 5));
        }
    }
}
