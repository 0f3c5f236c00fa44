//! Streams and their sources, with compiled queries.

use super::columns::WRAPPER;
use super::form::{SourcePlan, StreamPlan};
use super::{columns, windows, wrappers};
use crate::virtual_sensors::descriptor::{Descriptor, Source, Stream};
use crate::virtual_sensors::fault::{Fault, Note};
use crate::virtual_sensors::sql::compile::{Table, compile};
use crate::virtual_sensors::sql::statement::Statement;

pub(super) fn stream(
    stream: &Stream,
    descriptor: &Descriptor,
    fields: &dyn Fn(&Source) -> Option<Vec<String>>,
    notes: &mut Vec<Note>,
) -> Result<StreamPlan, Fault> {
    let statement = Statement::parse(&stream.query)?;
    let mut sources = Vec::new();
    for source in &stream.sources {
        let query = Statement::parse(&source.query)?;
        let (wrapper, said) = wrappers::choose(source, notes)?;
        let said = said.unwrap_or_default();
        let named = (!said.is_empty()).then(|| said.iter().map(|(name, _)| name.clone()).collect());
        let known = fields(source).or(named);
        let text = said.into_iter().filter(|(_, is_text)| *is_text);
        let text_columns = text.map(|(name, _)| name).collect();
        let columns = columns::of(source, known, &query, &statement, descriptor)?;
        let table = Table { name: WRAPPER, columns: columns.clone() };
        let query = compile(&query, &[table])?;
        let window = windows::window(source, notes)?;
        let sampling = sampling(source, notes)?;
        let alias = source.alias.value.clone();
        sources.push(SourcePlan { alias, wrapper, window, sampling, columns, text_columns, query });
    }
    let tables: Vec<_> = sources
        .iter()
        .map(|source| {
            let columns = source.query.output.iter().map(|output| output.name.clone()).collect();
            Table { name: &source.alias, columns }
        })
        .collect();
    let query = compile(&statement, &tables)?;
    for (at, source) in sources.iter().enumerate() {
        if !query.tables.contains(&at) {
            let text = format!("the query of stream {} does not read {}", stream.name.value, source.alias);
            notes.push(Note { place: stream.query.place, text });
        }
    }
    let count = stream.count.as_ref().map(|count| count.value as u64).filter(|count| *count > 0);
    let rate = stream.rate.as_ref().map_or(0, |rate| rate.value);
    Ok(StreamPlan { name: stream.name.value.clone(), rate, count, sources, query })
}

/// The share of elements that are kept, as GSN draws it: by the last two digits of their times.
fn sampling(source: &Source, notes: &mut Vec<Note>) -> Result<Option<f64>, Fault> {
    let Some(said) = source.sampling_rate.as_ref().filter(|said| !said.value.trim().is_empty()) else {
        return Ok(None);
    };
    let rate: f64 = match said.value.trim().parse() {
        Ok(rate) if (0.0..=1.0).contains(&rate) => rate,
        _ => {
            let reason = format!("sampling-rate is {:?}; it is a number from 0 to 1", said.value);
            return Err(Fault::invalid(said.place, reason));
        }
    };
    if rate == 1.0 {
        return Ok(None);
    }
    let text = if rate == 0.0 {
        format!("sampling-rate is 0, so source {} gives no rows", source.alias.value)
    } else {
        format!(
            "sampling-rate keeps elements whose time in milliseconds modulo 100 is less than {}, as GSN does; of times in whole \
             seconds it keeps all",
            rate * 100.0
        )
    };
    notes.push(Note { place: said.place, text });
    Ok(Some(rate * 100.0))
}
