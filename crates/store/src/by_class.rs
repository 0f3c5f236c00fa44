//! A value for each durability class.

use std::ops::{Index, IndexMut};

use crate::durability::Durability;

/// One value for each durability class, found by the class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ByClass<T>([T; Durability::ALL.len()]);

impl<T> ByClass<T> {
    /// The value that `make` gives for each class.
    pub fn from_fn(make: impl FnMut(Durability) -> T) -> Self {
        Self(Durability::ALL.map(make))
    }

    /// The values, the weakest class first.
    pub fn iter(&self) -> std::slice::Iter<'_, T> {
        self.0.iter()
    }

    /// The values, the weakest class first.
    pub fn iter_mut(&mut self) -> std::slice::IterMut<'_, T> {
        self.0.iter_mut()
    }
}

impl<T> Index<Durability> for ByClass<T> {
    type Output = T;

    fn index(&self, class: Durability) -> &T {
        &self.0[class as usize]
    }
}

impl<T> IndexMut<Durability> for ByClass<T> {
    fn index_mut(&mut self, class: Durability) -> &mut T {
        &mut self.0[class as usize]
    }
}

impl<'a, T> IntoIterator for &'a ByClass<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_found_by_its_class() {
        let mut names = ByClass::from_fn(Durability::name);
        assert_eq!(names[Durability::Os], "os");
        names[Durability::Os] = "o";
        assert_eq!(names.iter().copied().collect::<Vec<_>>(), ["memory", "o", "fsync"]);
    }
}
