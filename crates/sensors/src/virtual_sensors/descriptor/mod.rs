//! What a descriptor says, as plain data.
//!
//! [`Descriptor::from_xml`] reads GSN's files, of versions 1.1 and 2.0; [`Descriptor::from_toml`] reads the same words as TOML.
//! Both make a tree of `Node`s, which one reader turns into the descriptor.

mod data_type;
mod fields;
mod form;
mod located;
pub(crate) mod node;
mod pairs;
pub(crate) mod read;
mod sources;
mod toml;
pub(crate) mod xml;

pub use data_type::DataType;
pub use form::{Address, Descriptor, Field, Pair, Processing, Source, Storage, Stream};
pub use located::Located;

use super::fault::{Fault, TextPosition};
use super::limits::DESCRIPTOR_BYTES_MAX;

impl Descriptor {
    /// Reads a file of GSN.
    ///
    /// # Errors
    /// Names the place, the fault and what is expected.
    pub fn from_xml(text: &str) -> Result<Self, Fault> {
        check_size(text)?;
        read::descriptor(&xml::parse(text, "virtual-sensor")?)
    }

    /// Reads the same words as TOML.
    ///
    /// # Errors
    /// Names the place, the fault and what is expected.
    pub fn from_toml(text: &str) -> Result<Self, Fault> {
        check_size(text)?;
        read::descriptor(&toml::parse(text, "virtual-sensor")?)
    }

    /// Reads a descriptor whose form the caller does not know: what begins with `<` is XML.
    ///
    /// # Errors
    /// As [`Self::from_xml`] and [`Self::from_toml`].
    pub fn parse(text: &str) -> Result<Self, Fault> {
        let body = text.trim_start_matches('\u{feff}').trim_start();
        if body.starts_with('<') { Self::from_xml(text) } else { Self::from_toml(text) }
    }
}

pub(crate) fn check_size(text: &str) -> Result<(), Fault> {
    if text.len() <= DESCRIPTOR_BYTES_MAX {
        return Ok(());
    }
    let reason =
        format!("the file has {} bytes; at most {DESCRIPTOR_BYTES_MAX} (DESCRIPTOR_BYTES_MAX)", text.len());
    Err(Fault::limit(TextPosition::START, reason))
}
