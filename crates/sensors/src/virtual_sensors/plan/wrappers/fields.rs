//! The fields of the elements of a wrapper, if they are known before elements come.

use super::csv_file::CsvFormat;
use super::external::ExternalWrapper;
use super::form::Wrapper;
use crate::virtual_sensors::descriptor::{Address, Field};

/// A field that an address names, and whether it is text.
pub(in crate::virtual_sensors::plan) type NamedField = (String, bool);

/// The fields that an address names, with whether they are text: in an output structure, by its columns, or because its wrapper
/// always has the same ones.
pub(super) fn of(address: &Address, wrapper: &Wrapper) -> Option<Vec<NamedField>> {
    if !address.output.is_empty() {
        let named = |field: &Field| (field.name.value.clone(), !field.data_type.is_number());
        return Some(address.output.iter().map(named).collect());
    }
    match wrapper.external()? {
        ExternalWrapper::Csv(file) if file.columns.is_empty() => None,
        ExternalWrapper::Csv(file) => {
            let named = file.columns.iter().filter(|column| column.name != "timed");
            Some(named.map(|column| (column.name.clone(), column.format == CsvFormat::Text)).collect())
        }
        other => Some(other.fixed_fields()?.iter().map(|name| ((*name).to_owned(), false)).collect()),
    }
}
