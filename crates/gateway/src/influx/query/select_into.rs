//! `SELECT ... INTO`: the rows of an answer become points of another measurement.

use std::ops::ControlFlow;
use std::sync::Arc;

use hub::OpenDatabase;
use hub::caller::Caller;
use hub::points::{Accepted, PointRefusal, Points};
use hub::sql::Reader;
use hub::time_series::ChunkSender;
use model::name::check_key;
use model::{Timestamp, ValueRef};
use timeseries::Source;
use timeseries::influxql::ast::Select;
use timeseries::influxql::{self, Context, Head, Value};

use super::super::limits::INTO_ROWS;
use super::refusal::error_of;
use super::text::ResultText;
use crate::error::ApiError;
use crate::http::tools::series_rows::{Target, store_rows};
use crate::http::tools::state::HttpState;

/// Distinguishes the names of these series from those of the other interfaces.
const ROWS_OF_ANSWERS: u8 = 2;

/// Rows of an answer with their heads.
type Rows = Vec<(Arc<Head>, Vec<Value>)>;

/// Runs a statement and stores its rows. Returns their number, when they are on the disk.
pub(super) async fn write_rows(
    state: &HttpState,
    caller: &Caller,
    from: &OpenDatabase,
    to: &OpenDatabase,
    select: Box<Select>,
    context: Context,
) -> Result<u64, ApiError> {
    let name: Option<Arc<str>> =
        select.into.as_ref().and_then(|target| target.name.as_deref()).map(Arc::from);
    let target = Target { caller: caller.clone(), database: to.clone(), topic: "/query" };
    let read =
        move |source: &dyn Source, chunks: &ChunkSender<Rows>| send_rows(&select, source, &context, chunks);
    let mut chunks = state.hub.stream_time_series(&Reader::from(caller.clone()), from, read)?;
    let mut written = 0;
    while let Some(rows) = chunks.next().await {
        let (rows, name) = (Arc::new(rows.map_err(error_of)?), name.clone());
        let bytes = rows.len() * size_of::<Value>();
        let collect = move |points: &mut Points| {
            rows.iter().zip(0..).try_for_each(|((head, values), item)| {
                let name = name.as_deref().unwrap_or(&head.name);
                match add(points, item, name, head, values) {
                    // The request fails as a whole, whatever is collected.
                    Ok(()) | Err(PointRefusal::NoSeriesNow) => Ok(()),
                    Err(refusal) => Err(ApiError::argument(format!("partial write: {refusal}"))),
                }
            })
        };
        let (Accepted { rows, refused }, ()) = store_rows(state, &target, bytes, collect).await?;
        if let Some(first) = refused.first() {
            return Err(ApiError::argument(format!(
                "partial write: {} dropped={}",
                first.reason,
                refused.len()
            )));
        }
        written += rows as u64;
    }
    Ok(written)
}

/// The result of a statement that has written rows.
pub(super) fn written_text(written: u64, mut text: ResultText) -> Vec<u8> {
    let head = Head {
        name: "result".to_owned(),
        tags: Vec::new(),
        columns: vec!["time".to_owned(), "written".to_owned()],
        timed: true,
        zone: None,
    };
    text.row(&head, &[Value::Int(0), Value::Int(written.cast_signed())]);
    text.end()
}

/// Runs a statement and sends its rows in batches.
fn send_rows(
    select: &Select,
    source: &dyn Source,
    context: &Context,
    chunks: &ChunkSender<Rows>,
) -> Result<(), influxql::Error> {
    let (mut rows, mut head): (Rows, Option<Arc<Head>>) = (Vec::new(), None);
    let mut has_left = false;
    influxql::select(select, source, context, &mut |own, values| {
        let head = match &head {
            Some(known) if **known == *own => Arc::clone(known),
            _ => Arc::clone(head.insert(Arc::new(own.clone()))),
        };
        rows.push((head, values));
        has_left = rows.len() >= INTO_ROWS && chunks.send(std::mem::take(&mut rows)).is_err();
        if has_left { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    if !has_left && !rows.is_empty() {
        // It fails only if the client has left.
        let _ = chunks.send(rows);
    }
    Ok(())
}

/// Adds a row of an answer. Columns without a value are not fields; a row without fields is not a point.
fn add(
    points: &mut Points,
    item: u32,
    name: &str,
    head: &Head,
    values: &[Value],
) -> Result<(), PointRefusal> {
    let fields: Vec<(&str, ValueRef<'_>)> = head
        .columns
        .iter()
        .zip(values)
        .skip(1)
        .filter_map(|(column, value)| Some((column.as_str(), value_of(value)?)))
        .collect();
    fields.iter().try_for_each(|(column, _)| check_key(column))?;
    let Some(Value::Int(nanos)) = values.first().filter(|_| !fields.is_empty()) else { return Ok(()) };
    let tags = || head.tags.iter().filter(|(_, value)| !value.is_empty());
    let mut key = vec![ROWS_OF_ANSWERS];
    for text in [name].into_iter().chain(tags().flat_map(|(tag, value)| [tag.as_str(), value.as_str()])) {
        // The length keeps neighbouring texts apart.
        key.extend_from_slice(&(text.len() as u32).to_le_bytes());
        key.extend_from_slice(text.as_bytes());
    }
    let names = || (name, tags().map(|(tag, value)| (tag.as_str(), value.as_str())).collect());
    points.add(item, Timestamp::from_micros(nanos.div_euclid(1_000)), &key, names, fields)
}

fn value_of(value: &Value) -> Option<ValueRef<'_>> {
    match value {
        Value::Null => None,
        Value::Num(number) => number.is_finite().then_some(ValueRef::F64(*number)),
        Value::Int(number) => Some(ValueRef::I64(*number)),
        Value::Str(text) => Some(ValueRef::String(text)),
        Value::Bool(value) => Some(ValueRef::Bool(*value)),
    }
}
