//! `sample=true`: some rows of many, for a plot. The rows that remain are those that GSN 1.1 keeps.

use super::limits::SAMPLED_VALUES_MIN;

/// Takes the last row of each group of rows, until as many rows are left as it may still take.
#[derive(Debug)]
pub(super) struct Sampler {
    rows_left: u64,
    may_take: u64,
    group: u64,
    in_group: u64,
}

impl Sampler {
    /// A sampler of `rows` rows with values of `fields` fields in all. With a percentage it takes about that share of them. `None` if
    /// there are so few rows that all are taken.
    pub(super) fn new(rows: u64, fields: usize, percentage: Option<u64>) -> Option<Self> {
        let most = SAMPLED_VALUES_MIN as f64 / fields.max(1) as f64;
        if rows as f64 <= most {
            return None;
        }
        let (mut may_take, mut group) = (most as u64, (rows as f64 / most).ceil() as u64);
        if let Some(percentage) = percentage.filter(|percentage| (1..=100).contains(percentage))
            && rows * percentage > 100
        {
            may_take = rows * percentage / 100;
            group = rows / may_take;
        }
        Some(Self { rows_left: rows, may_take, group, in_group: 0 })
    }

    /// Whether the next row is taken.
    pub(super) fn takes_next(&mut self) -> bool {
        if self.in_group == 0 && self.rows_left <= self.may_take {
            return true;
        }
        self.in_group += 1;
        if self.in_group < self.group {
            return false;
        }
        self.in_group = 0;
        self.rows_left = self.rows_left.saturating_sub(self.group);
        self.may_take = self.may_take.saturating_sub(1);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(rows: u64, fields: usize, percentage: Option<u64>) -> Vec<u64> {
        let mut sampler = Sampler::new(rows, fields, percentage).unwrap();
        (0..rows).filter(|_| sampler.takes_next()).collect()
    }

    #[test]
    fn few_rows_are_taken_as_they_are() {
        assert!(Sampler::new(20_000, 1, None).is_none());
        assert!(Sampler::new(20_001, 1, None).is_some());
        assert!(Sampler::new(5_001, 4, None).is_some());
    }

    #[test]
    fn groups_shrink_to_single_rows_when_few_are_left() {
        let taken = taken(30_000, 1, None);
        assert_eq!(taken.len(), 20_000);
        assert_eq!((taken[0], taken[1], taken[9_999], taken[10_000]), (1, 3, 19_999, 20_000));
    }

    #[test]
    fn a_percentage_is_the_share_of_rows() {
        let taken = taken(30_000, 1, Some(10));
        assert_eq!((taken.len(), taken[0], taken[2_999]), (3_000, 9, 29_999));
    }
}
