//! An answer of `/multidata` as CSV: what it has, and whether it is right.

/// The contents of an answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Contents {
    pub(super) rows: u64,
    /// Bytes of the lines with rows, without their ends.
    pub(super) line_bytes: u64,
}

/// Reads the answer for one sensor. `fields` are the names of its columns, the time first.
///
/// The error states what is wrong: another sensor or other columns in the head, a row with too few values, a time before that of the row above.
pub(super) fn read(body: &[u8], sensor: &str, fields: &[String]) -> Result<Contents, String> {
    let mut contents = Contents::default();
    let mut columns: Option<usize> = None;
    let (mut is_named, mut last) = (false, None);
    if body.last().is_some_and(|byte| *byte != b'\n') {
        return Err("the answer ends within a line".to_owned());
    }
    for line in body.split_inclusive(|byte| *byte == b'\n') {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if let Some(head) = line.strip_prefix(b"#") {
            let head = String::from_utf8_lossy(head);
            let head = head.trim();
            if let Some(name) = head.strip_prefix("vsname:") {
                is_named = name.eq_ignore_ascii_case(sensor);
            } else if columns.is_none() && is_names(head, fields) {
                columns = Some(fields.len());
            }
            continue;
        }
        if line.is_empty() {
            continue;
        }
        let Some(columns) = columns else {
            return Err(format!("no line names the columns {} before the first row", fields.join(",")));
        };
        if line.iter().filter(|byte| **byte == b',').count() + 1 < columns {
            return Err(format!(
                "row {} has fewer than {columns} values: {}",
                contents.rows + 1,
                quoted(line)
            ));
        }
        let time = line.split(|byte| *byte == b',').next().unwrap_or_default();
        let seconds =
            seconds(time).ok_or_else(|| format!("{} is not a known form of a time", quoted(time)))?;
        if last.is_some_and(|last| last > seconds) {
            return Err(format!(
                "row {} is earlier than the row before: {}",
                contents.rows + 1,
                quoted(line)
            ));
        }
        last = Some(seconds);
        contents.rows += 1;
        contents.line_bytes += line.len() as u64;
    }
    if !is_named {
        return Err(format!("the head does not name the sensor {sensor}: {}", quoted(body)));
    }
    Ok(contents)
}

/// Whether a line of the head names the columns.
fn is_names(head: &str, fields: &[String]) -> bool {
    let mut names = head.split(',');
    let is_time = names.next().is_some_and(|name| ["time", "timed"].contains(&name.trim()));
    let mut others = fields.iter().skip(1);
    is_time
        && names.all(|name| others.next().is_some_and(|field| field.eq_ignore_ascii_case(name.trim())))
        && others.next().is_none()
}

fn quoted(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(clients::limits::HTTP_QUOTE_CHARS)]).into_owned()
}

/// The seconds of `27/11/2026 20:15:30 +0100`, of `2026-11-27T20:15:30...`, or of a number of milliseconds.
fn seconds(time: &[u8]) -> Option<i64> {
    let number = |range: std::ops::Range<usize>| -> Option<i64> {
        let digits = time.get(range)?;
        digits
            .iter()
            .try_fold(0, |sum, digit| digit.is_ascii_digit().then(|| sum * 10 + i64::from(*digit - b'0')))
    };
    if time.len() <= 16 && time.iter().all(u8::is_ascii_digit) && !time.is_empty() {
        return number(0..time.len()).map(|millis| millis.div_euclid(1_000));
    }
    let (year, month, day) = match time.get(2)? {
        b'/' => (number(6..10)?, number(3..5)?, number(0..2)?),
        _ => (number(0..4)?, number(5..7)?, number(8..10)?),
    };
    let of_day = number(11..13)? * 3_600 + number(14..16)? * 60 + number(17..19)?;
    Some(days(year, month, day) * 86_400 + of_day - offset(&time[19..]))
}

/// The offset at the end of a time, seconds.
fn offset(rest: &[u8]) -> i64 {
    let Some(at) = rest.iter().rposition(|byte| matches!(byte, b'+' | b'-')) else { return 0 };
    let digits: Vec<i64> = rest[at + 1..]
        .iter()
        .filter(|byte| byte.is_ascii_digit())
        .map(|byte| i64::from(byte - b'0'))
        .collect();
    let [a, b, c, d] = digits[..] else { return 0 };
    let seconds = (a * 10 + b) * 3_600 + (c * 10 + d) * 60;
    if rest[at] == b'-' { -seconds } else { seconds }
}

/// Days since 1970 of the Gregorian calendar. A year begins in March here, so that the day of a leap year is its last.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let month = (month + 9) % 12;
    let day_of_year = (153 * month + 2) / 5 + day - 1;
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "# vsname:street\n# query:select a\n# description:x\n# time,a,b\n# ,C,\n";

    fn contents(rows: &str) -> Result<Contents, String> {
        let fields = ["time", "a", "b"].map(str::to_owned);
        read(format!("{HEAD}{rows}").as_bytes(), "street", &fields)
    }

    #[test]
    fn rows_and_their_bytes_count() {
        let rows = "27/11/2026 20:15:30 +0000,1.0,2\n27/11/2026 20:15:30 +0000,null,x,y\n";
        assert_eq!(contents(rows), Ok(Contents { rows: 2, line_bytes: 31 + 34 }));
        assert_eq!(contents(""), Ok(Contents::default()));
    }

    #[test]
    fn a_wrong_answer_is_named() {
        for (rows, expected) in [
            ("27/11/2026 20:15:30 +0000,1.0\n", "fewer than 3"),
            ("27/11/2026 20:15:31 +0000,1,2\n27/11/2026 20:15:30 +0000,1,2\n", "row 2 is earlier"),
            ("yesterday,1,2\n", "not a known form"),
            ("27/11/2026 20:15:30 +0000,1,2", "within a line"),
        ] {
            let error = contents(rows).unwrap_err();
            assert!(error.contains(expected), "{rows}: {error}");
        }
        let fields = ["time", "a"].map(str::to_owned);
        let text = format!("{HEAD}27/11/2026 20:15:30 +0000,1,2\n");
        assert!(read(text.as_bytes(), "street", &fields).unwrap_err().contains("names the columns"));
        assert!(
            read(text.as_bytes(), "road", &["time", "a", "b"].map(str::to_owned))
                .unwrap_err()
                .contains("road")
        );
    }

    #[test]
    fn times_of_several_forms_are_comparable() {
        assert_eq!(days(1970, 1, 1), 0);
        assert_eq!(seconds(b"27/11/2026 20:15:30 +0000"), Some(1_795_810_530));
        assert_eq!(seconds(b"27/11/2026 21:15:30 +0100"), Some(1_795_810_530));
        assert_eq!(seconds(b"2026-11-27T20:15:30.125Z"), Some(1_795_810_530));
        assert_eq!(seconds(b"2026-11-27T20:15:30.125+0000"), Some(1_795_810_530));
        assert_eq!(seconds(b"1795810530125"), Some(1_795_810_530));
        assert_eq!((seconds(b""), seconds(b"x"), seconds(b"27/11")), (None, None, None));
    }
}
