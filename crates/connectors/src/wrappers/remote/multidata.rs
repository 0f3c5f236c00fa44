//! `/multidata` of GSN 1.1.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use model::Value;
use virtual_sensors::{Remote, shown_url};

use super::rows::{Row, Rows};
use crate::time::day_first;
use crate::wrappers::csv::split;
use crate::wrappers::failure::Failure;
use crate::wrappers::http::{Client, Request};

/// The rows from a time on.
pub(super) async fn rows(remote: &Remote, begin_ms: i64, client: &Client) -> Result<Rows, Failure> {
    // The server gives rows after this second.
    let from = day_first(begin_ms.saturating_sub(1_000)).replace(' ', "%20");
    let url = format!(
        "{}/multidata?vs%5B0%5D={}&field%5B0%5D=All&download_format=csv&download_mode=inline&time_format=unix&from={from}",
        remote.url, remote.sensor
    );
    let authorization = remote.login.as_ref().map(basic);
    let answer = client.send(Request::Get { url: url.clone(), authorization }).await?;
    let body = answer.success(&url)?;
    let text = String::from_utf8_lossy(&body);
    read(&text).map_err(|reason| Failure::new(format!("the answer of {}: {reason}", shown_url(&remote.url))))
}

/// The header of a login by HTTP Basic.
pub(super) fn basic((user, password): &(String, String)) -> String {
    format!("Basic {}", BASE64_STANDARD.encode(format!("{user}:{password}")))
}

/// Reads the CSV: comments with `#`, of which one names the columns, and rows. A row that cannot be read does not hide the others.
fn read(text: &str) -> Result<Rows, String> {
    let mut names: Option<Vec<String>> = None;
    let mut rows = Rows::default();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        if let Some(comment) = line.strip_prefix('#') {
            if let Some(columns) = comment.trim_start().strip_prefix("time,") {
                names = Some(columns.split(',').map(|name| name.trim().to_lowercase()).collect());
            }
            continue;
        }
        let columns =
            names.as_ref().ok_or("a row comes before the line \"# time,\" with the names of the columns")?;
        rows.add(row(line, columns.len()), || line.to_owned());
    }
    rows.rows.sort_by_key(|(ms, _)| *ms);
    Ok(Rows { names: names.unwrap_or_default(), ..rows })
}

fn row(line: &str, columns: usize) -> Result<Row, String> {
    let cells = split(line, ',', '"')?;
    let time = cells.first().map(|cell| cell.trim()).unwrap_or_default();
    let ms: i64 = time.parse().map_err(|_| format!("{time:?} is not a number of milliseconds"))?;
    let value = |at: usize| cells.get(at + 1).and_then(|cell| value(cell));
    Ok((ms, (0..columns).map(value).collect()))
}

fn value(cell: &str) -> Option<Value> {
    let text = cell.trim();
    if text.is_empty() || text == "null" {
        return None;
    }
    if let Ok(number) = text.parse::<i64>() {
        return Some(Value::I64(number));
    }
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() => Some(Value::F64(number)),
        _ => Some(Value::String(cell.into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read_below_the_names_of_their_columns() {
        let text = "# vsname:street\n# query:select 1\n# time,temperature,State\n# ,C,\n2000,20.5,null\n1000,1.0E1,a b\n";
        let rows = read(text).unwrap();
        assert_eq!(rows.names, ["temperature", "state"]);
        assert_eq!(rows.rows[0], (1_000, vec![Some(Value::F64(10.0)), Some(Value::String("a b".into()))]));
        assert_eq!(rows.rows[1], (2_000, vec![Some(Value::F64(20.5)), None]));
        assert_eq!(read("# vsname:street\n").unwrap(), Rows::default());
        assert!(read("1,2\n").unwrap_err().contains("names of the columns"));
    }

    #[test]
    fn a_row_that_cannot_be_read_does_not_hide_the_others() {
        let rows = read("# time,a\nnow,2\n1000,3\n2000,\"4\n").unwrap();
        assert_eq!(rows.rows, [(1_000, vec![Some(Value::I64(3))])]);
        let refused: Vec<_> = rows.refused.iter().map(|one| one.text.as_str()).collect();
        assert_eq!(refused, ["now,2", "2000,\"4"]);
        assert_eq!(rows.refused[0].reason, "\"now\" is not a number of milliseconds");
    }
}
