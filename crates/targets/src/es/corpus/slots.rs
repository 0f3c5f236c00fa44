//! Weighted choice by one look into a table.

use load::dataset::Random;

/// The number of places of a table. The share of an item is rounded to one of 65,536.
const PLACES: usize = 1 << 16;

/// The items 0..n, each in as many places of a table as its weight says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Slots {
    places: Vec<u16>,
}

impl Slots {
    /// Items by weight; every weight above zero gets its share of the places, rounded.
    pub(super) fn new(weights: &[f64]) -> Self {
        let sum: f64 = weights.iter().sum();
        let mut places = Vec::with_capacity(PLACES);
        let mut upto = 0.0;
        for (item, weight) in weights.iter().enumerate() {
            upto += weight;
            let end = (upto / sum * PLACES as f64).round() as usize;
            places.resize(end.clamp(places.len(), PLACES), item as u16);
        }
        places.resize(PLACES, weights.len().saturating_sub(1) as u16);
        Self { places }
    }

    /// Items whose weight is one divided by their rank, which begins at 1.
    pub(super) fn by_rank(count: usize) -> Self {
        let weights: Vec<f64> = (1..=count).map(|rank| 1.0 / rank as f64).collect();
        Self::new(&weights)
    }

    /// A random item.
    pub(super) fn draw(&self, random: &mut Random) -> usize {
        usize::from(self.places[(random.bits() >> 48) as usize])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_have_their_share_of_the_places() {
        let slots = Slots::new(&[0.5, 0.0, 0.25, 0.25]);
        let count = |item: u16| slots.places.iter().filter(|place| **place == item).count();
        assert_eq!([0, 1, 2, 3].map(count), [32_768, 0, 16_384, 16_384]);
        let ranks = Slots::by_rank(250);
        assert!((0..250).all(|item| ranks.places.contains(&item)));
    }
}
