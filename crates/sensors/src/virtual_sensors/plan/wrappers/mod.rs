//! Wrappers: where the elements of a source come from.

mod csv_file;
mod external;
mod fields;
mod form;
mod jdbc;
mod predicates;
mod remote;
mod time_pattern;
mod time_zone;
mod unsupported;

pub use csv_file::{CsvColumn, CsvFile, CsvFormat};
pub use external::{ExternalWrapper, MqttTopic};
pub use form::Wrapper;
pub use jdbc::{JdbcWrapper, Relation};
pub use remote::{Remote, RemoteInterface};
pub use time_pattern::TimePattern;
pub use time_zone::TimeZone;

use crate::virtual_sensors::descriptor::{Address, Source};
use crate::virtual_sensors::fault::{Fault, Note};
use fields::NamedField;
use predicates::Predicates;

/// The first address with a wrapper that is here, and the fields of its elements if they are known.
pub(super) fn choose(
    source: &Source,
    notes: &mut Vec<Note>,
) -> Result<(Wrapper, Option<Vec<NamedField>>), Fault> {
    let mut first = None;
    for (at, address) in source.addresses.iter().enumerate() {
        match wrapper(address, notes) {
            Ok(wrapper) => {
                let passed = source.addresses[..at].iter().chain(&source.addresses[at + 1..]);
                for other in passed {
                    let text = format!("the address with wrapper {} is not used", other.wrapper.value);
                    notes.push(Note { place: other.wrapper.place, text });
                }
                let fields = fields::of(address, &wrapper);
                return Ok((wrapper, fields));
            }
            Err(fault) => first = first.or(Some(fault)),
        }
    }
    Err(first.unwrap_or_else(|| Fault::invalid(source.alias.place, "the source has no address")))
}

fn wrapper(address: &Address, notes: &mut Vec<Note>) -> Result<Wrapper, Fault> {
    let mut predicates = Predicates::of(address);
    let wrapper = match address.wrapper.value.as_str() {
        "tacho" => tacho(&mut predicates)?,
        "local" => {
            if let Some(pair) = predicates.take("query") {
                let reason =
                    "write what to select into the query of the source, and the sensor into \"name\"";
                return Err(Fault::unsupported(pair.key.place, reason));
            }
            Wrapper::Local { sensor: predicates.needed("name")?.to_lowercase() }
        }
        name => match external::parse(name, &mut predicates, notes)? {
            Some(external) => Wrapper::External(external),
            None => return Err(unsupported::refuse(&address.wrapper, name)),
        },
    };
    predicates.finish()?;
    Ok(wrapper)
}

fn tacho(predicates: &mut Predicates<'_>) -> Result<Wrapper, Fault> {
    let device = predicates.needed("device")?;
    let (table, profile) = (predicates.optional("table"), predicates.optional("profile"));
    let said = predicates.take("profile");
    if let Some(pair) = said.filter(|_| table.is_some() && profile.is_some()) {
        let reason = "the profile says which table its devices write to; use table or profile";
        return Err(Fault::invalid(pair.key.place, reason));
    }
    Ok(Wrapper::Tacho { device, table, profile })
}
