//! Members of bodies that ask for what this server does not have.

use serde_json::Value;

use super::answers::Refusal;

/// Members of a query. Each would change the answer.
const OF_QUERY: [(&str, &str); 1] = [("padding", "the answer has only points from start to end")];

/// Members of a sub query or of a field of it. Each would change the answer.
const OF_SUB_QUERY: [(&str, &str); 14] = [
    ("percentiles", "this server has no histograms"),
    ("showHistogramBuckets", "this server has no histograms"),
    ("preAggregate", "this server has no pre-aggregated values"),
    ("delta", "rate gives the change per second"),
    ("deltaOptions", "rate gives the change per second"),
    ("granularity", "use downsample"),
    ("preDpValue", "dpValue filters the values of the answer"),
    ("top", "sort the answer"),
    ("globalLimit", "limit holds for each series of the answer"),
    ("slimit", "limit holds for each series of the answer"),
    ("realTimeSeconds", "all values can be read at once"),
    ("where", "dpValue filters the values of the answer"),
    ("forecasting", "this server does not forecast"),
    ("abnormaldetect", "this server does not look for abnormal values"),
];

/// Members of HiTSDB's wishes for last points. Each would change the answer.
const OF_LAST: [(&str, &str); 2] = [
    ("timestamp", "the last points are those of now; use /api/query for another time"),
    ("limit", "each series has one last point"),
];

/// Values of `rollupUsage` with which OpenTSDB reads what was written when there are no rollups.
const READS_RAW: [&str; 3] = ["ROLLUP_RAW", "ROLLUP_FALLBACK", "ROLLUP_FALLBACK_RAW"];

/// Refuses a query that asks for what is absent here.
pub(super) fn refuse_members(body: &Value) -> Result<(), Refusal> {
    refuse(body, &OF_QUERY)?;
    for sub in elements(body, "queries") {
        refuse(sub, &OF_SUB_QUERY)?;
        let rollup = sub["rollupUsage"].as_str();
        if rollup.is_some_and(|usage| !READS_RAW.iter().any(|raw| raw.eq_ignore_ascii_case(usage))) {
            return Err(Refusal::bad_request(
                "'rollupUsage' is not supported: this server has no rollups and reads what was written",
            ));
        }
        for field in elements(sub, "fields") {
            refuse(field, &OF_SUB_QUERY)?;
        }
    }
    Ok(())
}

/// Refuses a wish for last points that asks for what is absent here.
pub(super) fn refuse_of_last(body: &Value) -> Result<(), Refusal> {
    refuse(body, &OF_LAST)?;
    refuse(body, &[("tupleFormat", "the answers in this form are those of /api/query/mlast")])?;
    elements(body, "queries").try_for_each(|sub| {
        refuse(sub, &[("fields", "the last values of fields are those of /api/query/mlast")])
    })
}

/// Refuses a wish for the last values of fields that asks for what is absent here. Clients of HiTSDB set `tupleFormat`, which is the form of
/// the answer.
pub(super) fn refuse_of_mlast(body: &Value) -> Result<(), Refusal> {
    refuse(body, &OF_LAST)
}

fn elements<'a>(value: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    value[name].as_array().into_iter().flatten()
}

fn refuse(object: &Value, names: &[(&str, &str)]) -> Result<(), Refusal> {
    match names.iter().find(|(name, _)| is_set(&object[*name])) {
        None => Ok(()),
        Some((name, why)) => Err(Refusal::bad_request(format!("'{name}' is not supported: {why}"))),
    }
}

/// Clients send members that they do not use with empty values.
fn is_set(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(value) => *value,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(elements) => !elements.is_empty(),
        Value::Object(members) => !members.is_empty(),
    }
}
