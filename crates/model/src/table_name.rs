//! Names of tables: a namespace and a name in it.

use std::borrow::Cow;
use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;

use crate::{NameError, name};

/// Stands between the namespace and the name in [`TableName::canonical`]. Names hold no control characters.
const SEPARATOR: char = '\u{1f}';

/// The tables of one tenant. Two namespaces can have tables with the same name, which share nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Namespace(Option<Arc<str>>);

impl Namespace {
    /// The namespace of the default tenant, and of data from before there were namespaces.
    pub const DEFAULT: Self = Self(None);

    /// The namespace with this name.
    ///
    /// # Errors
    /// Those of a table name.
    pub fn new(name: &str) -> Result<Self, NameError> {
        name::check_namespace(name)?;
        Ok(Self(Some(name.into())))
    }

    /// The name; `None` for the default namespace.
    pub fn name(&self) -> Option<&str> {
        self.0.as_deref()
    }
}

impl fmt::Display for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name().unwrap_or("default"))
    }
}

/// The identity of a table: its namespace and its name. A clone costs no allocation.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableName {
    canonical: Arc<str>,
}

impl TableName {
    /// The table with this name in a namespace.
    ///
    /// # Errors
    /// The name breaks the rules for table names.
    pub fn new(namespace: &Namespace, name: &str) -> Result<Self, NameError> {
        name::check_table(name)?;
        let canonical = match namespace.name() {
            None => name.into(),
            Some(namespace) => format!("{namespace}{SEPARATOR}{name}").into(),
        };
        Ok(Self { canonical })
    }

    /// Reads [`canonical`](Self::canonical) back, from a file. Applies no rules for names, because files can have names of
    /// earlier rules.
    pub fn from_canonical(canonical: &str) -> Self {
        Self { canonical: canonical.into() }
    }

    /// The form in files: the name, or namespace, U+001F and name outside of the default namespace.
    pub fn canonical(&self) -> &Arc<str> {
        &self.canonical
    }

    /// The namespace.
    pub fn namespace(&self) -> Namespace {
        Namespace(self.split().0.map(Arc::from))
    }

    /// Whether the table is in a namespace.
    pub fn is_in(&self, namespace: &Namespace) -> bool {
        self.split().0 == namespace.name()
    }

    /// The name in the namespace.
    pub fn name(&self) -> &str {
        self.split().1
    }

    fn split(&self) -> (Option<&str>, &str) {
        match self.canonical.split_once(SEPARATOR) {
            Some((namespace, name)) => (Some(namespace), name),
            None => (None, &self.canonical),
        }
    }
}

impl fmt::Display for TableName {
    /// The name, with the namespace behind it unless it is the default one.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.split() {
            (None, name) => f.write_str(name),
            (Some(namespace), name) => write!(f, "{name} (namespace {namespace})"),
        }
    }
}

impl fmt::Debug for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown: Cow<'_, str> = match self.split() {
            (None, name) => name.into(),
            (Some(namespace), name) => format!("{namespace}/{name}").into(),
        };
        write!(f, "{shown:?}")
    }
}

impl From<&TableName> for TableName {
    fn from(table: &TableName) -> Self {
        table.clone()
    }
}

/// The table with this name in the default namespace.
impl TryFrom<&str> for TableName {
    type Error = NameError;

    fn try_from(name: &str) -> Result<Self, NameError> {
        Self::new(&Namespace::DEFAULT, name)
    }
}

impl From<Infallible> for NameError {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_name_in_two_namespaces_is_two_tables() {
        let one = TableName::try_from("telemetry").unwrap();
        let acme = Namespace::new("acme").unwrap();
        let other = TableName::new(&acme, "telemetry").unwrap();
        assert_ne!(one, other);
        assert_eq!((one.name(), one.namespace()), ("telemetry", Namespace::DEFAULT));
        assert_eq!((other.name(), other.namespace()), ("telemetry", acme.clone()));
        assert!(other.is_in(&acme) && !other.is_in(&Namespace::DEFAULT) && one.is_in(&Namespace::DEFAULT));
        assert_eq!(other.to_string(), "telemetry (namespace acme)");
        for table in [one, other] {
            assert_eq!(TableName::from_canonical(table.canonical()), table);
        }
    }

    #[test]
    fn a_name_cannot_reach_another_namespace() {
        assert!(TableName::try_from("acme\u{1f}telemetry").is_err());
        assert!(Namespace::new("acme\u{1f}x").is_err() && Namespace::new("").is_err());
    }
}
