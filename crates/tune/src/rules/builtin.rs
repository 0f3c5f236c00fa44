//! The rule files of this crate.

use std::sync::OnceLock;

use super::rule::Product;

/// The facts that all products share.
pub const FACTS: &str = include_str!("../../rules/facts.toml");

/// The names and texts of the rule files.
pub const FILES: [(&str, &str); 10] = [
    ("cassandra", include_str!("../../rules/cassandra.toml")),
    ("elasticsearch", include_str!("../../rules/elasticsearch.toml")),
    ("gsn", include_str!("../../rules/gsn.toml")),
    ("hbase", include_str!("../../rules/hbase.toml")),
    ("hitsdb", include_str!("../../rules/hitsdb.toml")),
    ("linux", include_str!("../../rules/linux.toml")),
    ("mysql", include_str!("../../rules/mysql.toml")),
    ("postgresql", include_str!("../../rules/postgresql.toml")),
    ("redis", include_str!("../../rules/redis.toml")),
    ("tachograph", include_str!("../../rules/tachograph.toml")),
];

impl Product {
    /// All products, read once.
    pub fn all() -> &'static [Self] {
        static PRODUCTS: OnceLock<Vec<Product>> = OnceLock::new();
        PRODUCTS.get_or_init(|| {
            let read = |(name, text)| {
                Self::read(text, FACTS).unwrap_or_else(|error| panic!("BUG: {name}.toml: {error}"))
            };
            FILES.into_iter().map(read).collect()
        })
    }

    /// The product of that name.
    pub fn named(id: &str) -> Option<&'static Self> {
        Self::all().iter().find(|product| product.id == id)
    }
}
