//! Configuration files of Hadoop: `/conf` of a server, and a client's `hbase-site.xml`.
//!
//! Every version of HBase serves `/conf` as XML, so this program asks for no other format.

use std::collections::BTreeMap;
use std::path::Path;

use crate::limits::CLIENT_CONFIG_BYTES_MAX;

/// The properties of a configuration by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Configuration(BTreeMap<String, String>);

/// A text that is not a configuration.
#[derive(Debug, thiserror::Error)]
pub(super) enum ConfigurationError {
    /// A file that cannot be read.
    #[error("{0}")]
    Read(#[from] std::io::Error),
    /// A file that is too large.
    #[error("the file has more than {CLIENT_CONFIG_BYTES_MAX} bytes")]
    TooLong,
    /// Not XML.
    #[error("no XML: {0}")]
    Xml(#[from] roxmltree::Error),
    /// Another document.
    #[error("the document begins with <{0}>, a configuration begins with <configuration>")]
    Root(String),
}

impl Configuration {
    /// Reads a configuration. A name that is there twice has its last value, as in Hadoop.
    pub(super) fn read(text: &str) -> Result<Self, ConfigurationError> {
        let document = roxmltree::Document::parse(text)?;
        let root = document.root_element();
        if root.tag_name().name() != "configuration" {
            return Err(ConfigurationError::Root(root.tag_name().name().to_owned()));
        }
        let properties = root.children().filter(|node| node.has_tag_name("property"));
        let property = |node: roxmltree::Node<'_, '_>| {
            let text = |name: &str| {
                let child = node.children().find(|child| child.has_tag_name(name));
                child.map(|child| child.text().unwrap_or_default().trim().to_owned())
            };
            Some((text("name")?, text("value")?))
        };
        Ok(Self(properties.filter_map(property).collect()))
    }

    pub(super) fn read_file(path: &Path) -> Result<Self, ConfigurationError> {
        let file = std::fs::File::open(path)?;
        if file.metadata()?.len() > CLIENT_CONFIG_BYTES_MAX {
            return Err(ConfigurationError::TooLong);
        }
        Self::read(&std::io::read_to_string(file)?)
    }

    /// The value of a property.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// The number of a property.
    pub(super) fn number(&self, name: &str) -> Option<f64> {
        self.get(name)?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn properties_are_read() {
        let text = "<?xml version=\"1.0\"?><configuration>
            <property><name>a</name><value> 1 </value><source>x.xml</source></property>
            <property><name>b</name><value/></property>
            <property><name>c</name></property>
            <property><name>a</name><value>2</value></property></configuration>";
        let configuration = Configuration::read(text).unwrap();
        assert_eq!(
            (configuration.number("a"), configuration.get("b"), configuration.get("c")),
            (Some(2.0), Some(""), None)
        );
    }

    #[test]
    fn other_documents_are_refused() {
        let error = |text: &str| Configuration::read(text).unwrap_err().to_string();
        assert!(error("<html><body/></html>").contains("begins with <html>"));
        assert!(error("{}").starts_with("no XML"));
        let bomb = "<!DOCTYPE c [<!ENTITY a '&b;'><!ENTITY b '&a;'>]><configuration>&a;</configuration>";
        assert!(error(bomb).starts_with("no XML"));
    }
}
