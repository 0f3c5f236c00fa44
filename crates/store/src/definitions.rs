//! What a store has defined for each namespace, and who limits it.

use std::collections::HashMap;

use model::{Namespace, TableName};

use crate::error::StoreError;

/// Numbers of tables, series and columns. They take memory while the store is open, with rows or without.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Definitions {
    /// Tables.
    pub tables: u64,
    /// Series of these tables.
    pub series: u64,
    /// Columns of these tables: tags, and keys with each of their types.
    pub columns: u64,
}

impl Definitions {
    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            tables: self.tables + other.tables,
            series: self.series + other.series,
            columns: self.columns + other.columns,
        }
    }

    /// What is left without `other`, a part of this.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        Self {
            tables: self.tables - other.tables,
            series: self.series - other.series,
            columns: self.columns - other.columns,
        }
    }
}

/// What a store has defined, by namespace.
#[derive(Debug, Clone, Default)]
pub struct DefinitionCounts {
    numbers: HashMap<Namespace, usize>,
    counts: Vec<Definitions>,
    total: Definitions,
}

impl DefinitionCounts {
    /// The definitions of a namespace.
    pub fn of(&self, namespace: &Namespace) -> Definitions {
        self.numbers.get(namespace).map(|number| self.counts[*number]).unwrap_or_default()
    }

    /// The definitions of all namespaces.
    pub fn total(&self) -> Definitions {
        self.total
    }

    /// A number of a namespace, under which [`change`](Self::change) finds it without a look at its name.
    pub fn number(&mut self, namespace: Namespace) -> usize {
        let next = self.counts.len();
        let number = *self.numbers.entry(namespace).or_insert(next);
        if number == next {
            self.counts.push(Definitions::default());
        }
        number
    }

    /// Replaces a part of the definitions of a namespace, `before`, by `after`.
    pub fn change(&mut self, number: usize, before: Definitions, after: Definitions) {
        self.counts[number] = self.counts[number].plus(after).minus(before);
        self.total = self.total.plus(after).minus(before);
    }
}

/// Limits what callers define. A store asks before it defines something.
pub trait DefinitionLimits: Send + Sync + 'static {
    /// Whether a store that has `present` may define `new` for a table, which may be new itself. The store holds a lock: the answer
    /// needs no disk and no store.
    ///
    /// # Errors
    /// [`StoreError::OverLimit`] with what is too much.
    fn check(
        &self,
        table: &TableName,
        new: Definitions,
        present: &DefinitionCounts,
    ) -> Result<(), StoreError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_namespace_has_its_counts() {
        let mut counts = DefinitionCounts::default();
        let other = Namespace::new("other").unwrap();
        let numbers = [counts.number(Namespace::DEFAULT), counts.number(other.clone())];
        assert_eq!([counts.number(Namespace::DEFAULT), counts.number(other.clone())], numbers);
        let (one, two) = (
            Definitions { tables: 1, series: 1, columns: 2 },
            Definitions { tables: 1, series: 5, columns: 3 },
        );
        counts.change(numbers[0], Definitions::default(), one);
        counts.change(numbers[1], Definitions::default(), one);
        counts.change(numbers[1], one, two);
        assert_eq!((counts.of(&other), counts.of(&Namespace::DEFAULT)), (two, one));
        assert_eq!(counts.total(), one.plus(two));
        counts.change(numbers[1], two, Definitions::default());
        assert_eq!((counts.of(&other), counts.total()), (Definitions::default(), one));
    }
}
