//! Chooses the next operation of a connection by weight, among those of its group.

use crate::dataset::Random;

/// The operations of each group with their weights.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperationChoice {
    /// The end of each group's connection numbers.
    upto: Vec<u32>,
    /// For each group, the cumulative weights and the classes.
    classes: Vec<Vec<(u64, u16)>>,
}

impl OperationChoice {
    /// Takes the groups in the order of [`crate::engine::Plan::groups`]: the number of connections, and (class, weight)
    /// of the operations.
    pub fn new(groups: &[(u32, Vec<(u16, u32)>)]) -> Result<Self, String> {
        let mut choice = Self { upto: Vec::new(), classes: Vec::new() };
        let mut connections = 0;
        for (count, operations) in groups {
            connections += count;
            choice.upto.push(connections);
            let mut sum = 0;
            let weighted = operations.iter().filter(|(_, weight)| *weight > 0);
            let summed: Vec<(u64, u16)> = weighted
                .map(|(class, weight)| {
                    sum += u64::from(*weight);
                    (sum, *class)
                })
                .collect();
            if summed.is_empty() {
                return Err("no operation has a weight above 0".to_owned());
            }
            choice.classes.push(summed);
        }
        Ok(choice)
    }

    /// One group that contains all connections.
    pub fn of_all(weights: &[u32]) -> Result<Self, String> {
        let classes = weights.iter().enumerate().map(|(class, weight)| (class as u16, *weight)).collect();
        Self::new(&[(u32::MAX, classes)])
    }

    /// The number of connections of all groups.
    pub fn connections(&self) -> u32 {
        self.upto.last().copied().unwrap_or(0)
    }

    /// The class of the next operation of a connection.
    pub fn next(&self, connection: u32, random: &mut Random) -> Option<u16> {
        let group = self.upto.partition_point(|upto| *upto <= connection);
        let classes = self.classes.get(group)?;
        if let [(_, only)] = classes[..] {
            return Some(only);
        }
        let at = random.below(classes.last()?.0);
        Some(classes[classes.partition_point(|(sum, _)| *sum <= at)].1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_come_by_weight_and_group() {
        let choice = OperationChoice::new(&[(2, vec![(0, 3), (1, 1), (2, 0)]), (1, vec![(2, 1)])]).unwrap();
        let mut random = Random::new(1);
        let mut counts = [0; 3];
        for _ in 0..10_000 {
            counts[usize::from(choice.next(1, &mut random).unwrap())] += 1;
        }
        assert!((7_300..7_700).contains(&counts[0]) && counts[2] == 0, "{counts:?}");
        assert_eq!((choice.next(2, &mut random), choice.next(3, &mut random)), (Some(2), None));
        assert!(OperationChoice::of_all(&[0, 0]).is_err());
    }
}
