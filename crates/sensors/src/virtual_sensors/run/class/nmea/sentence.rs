//! One sentence: `$`, talker and kind, fields, `*` and a checksum.

use chrono::NaiveDate;

/// Kilometres per hour of one knot.
const KNOT_KMH: f64 = 1.852;

/// What sentences say together.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Fix {
    /// Degrees, north is positive.
    pub(super) latitude: Option<f64>,
    /// Degrees, east is positive.
    pub(super) longitude: Option<f64>,
    /// Metres above the mean sea level.
    pub(super) altitude_m: Option<f64>,
    pub(super) speed_kmh: Option<f64>,
    /// Degrees from true north.
    pub(super) course: Option<f64>,
    /// Milliseconds since 1970. Only RMC has the day.
    pub(super) time_ms: Option<i64>,
    pub(super) satellites: Option<i64>,
    /// Horizontal dilution of precision.
    pub(super) hdop: Option<f64>,
}

impl Fix {
    /// Adds what a sentence says; `None` if it cannot be read. Sentences of other kinds say nothing.
    pub(super) fn add(&mut self, line: &str) -> Option<()> {
        let body = checked(line)?;
        let fields: Vec<&str> = body.split(',').collect();
        let kind = fields[0];
        // Sentences of makers begin with P and have forms of their own.
        if kind.starts_with('P') {
            return Some(());
        }
        if kind.len() != 5 {
            return None;
        }
        let mut read = self.clone();
        match &kind[2..] {
            "RMC" => read.rmc(&fields)?,
            "GGA" => read.gga(&fields)?,
            "GLL" => read.gll(&fields)?,
            "VTG" => read.vtg(&fields)?,
            _ => {}
        }
        *self = read;
        Some(())
    }

    /// The least data of a receiver.
    fn rmc(&mut self, fields: &[&str]) -> Option<()> {
        if !is_valid(fields.get(2)?)? {
            return Some(());
        }
        self.position(fields.get(3..7)?)?;
        self.speed_kmh = number(fields.get(7)?)?.map(|knots| knots * KNOT_KMH).or(self.speed_kmh);
        self.course = number(fields.get(8)?)?.or(self.course);
        if let (Some(ms), Some(day)) = (time_of_day(fields.get(1)?)?, day(fields.get(9)?)?) {
            self.time_ms = Some(day + ms);
        }
        Some(())
    }

    /// The position with its quality.
    fn gga(&mut self, fields: &[&str]) -> Option<()> {
        let quality = whole(fields.get(6)?)?;
        if quality.unwrap_or(0) == 0 {
            return Some(());
        }
        time_of_day(fields.get(1)?)?;
        self.position(fields.get(2..6)?)?;
        self.satellites = whole(fields.get(7)?)?.or(self.satellites);
        self.hdop = number(fields.get(8)?)?.or(self.hdop);
        self.altitude_m = number(fields.get(9)?)?.or(self.altitude_m);
        Some(())
    }

    /// Latitude and longitude.
    fn gll(&mut self, fields: &[&str]) -> Option<()> {
        // Old receivers do not say whether the position is valid.
        if fields.get(6).map_or(Some(true), |status| is_valid(status))? {
            self.position(fields.get(1..5)?)?;
        }
        Some(())
    }

    /// Course and speed over ground.
    fn vtg(&mut self, fields: &[&str]) -> Option<()> {
        self.course = number(fields.get(1)?)?.or(self.course);
        let knots = number(fields.get(5)?)?.map(|knots| knots * KNOT_KMH);
        let kmh = fields.get(7).map_or(Some(None), |text| number(text))?;
        self.speed_kmh = kmh.or(knots).or(self.speed_kmh);
        Some(())
    }

    /// Latitude, N or S, longitude, E or W.
    fn position(&mut self, fields: &[&str]) -> Option<()> {
        let [latitude, north, longitude, east] = fields else { return None };
        self.latitude = Some(angle(latitude, north, ("N", "S"), 90.0)?);
        self.longitude = Some(angle(longitude, east, ("E", "W"), 180.0)?);
        Some(())
    }
}

/// The text between `$` and `*`, if its checksum is right: the exclusive or of its bytes, as two hexadecimal digits.
fn checked(line: &str) -> Option<&str> {
    let (body, sum) = line.strip_prefix('$')?.split_once('*')?;
    let is_sum = sum.len() == 2 && sum.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !is_sum || !body.is_ascii() || body.is_empty() {
        return None;
    }
    let expected = u8::from_str_radix(sum, 16).ok()?;
    (body.bytes().fold(0, |sum, byte| sum ^ byte) == expected).then_some(body)
}

fn is_valid(status: &str) -> Option<bool> {
    match status {
        "A" => Some(true),
        "V" => Some(false),
        _ => None,
    }
}

/// An angle of the form DDMM.mmm or DDDMM.mmm.
fn angle(text: &str, side: &str, (positive, negative): (&str, &str), most: f64) -> Option<f64> {
    let whole = text.split('.').next()?;
    let (degrees, minutes) = text.split_at_checked(whole.len().checked_sub(2)?)?;
    let degrees = if degrees.is_empty() { 0.0 } else { digits(degrees)? };
    let minutes = digits(minutes)?;
    let angle = degrees + minutes / 60.0;
    if minutes >= 60.0 || angle > most {
        return None;
    }
    match side {
        side if side == positive => Some(angle),
        side if side == negative => Some(-angle),
        _ => None,
    }
}

/// A number of digits and at most one point.
fn digits(text: &str) -> Option<f64> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    text.parse().ok().filter(|_| is_number)
}

/// A number, or nothing.
fn number(text: &str) -> Option<Option<f64>> {
    if text.is_empty() {
        return Some(None);
    }
    let (sign, rest) = match text.strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, text),
    };
    digits(rest).map(|number| Some(sign * number))
}

fn whole(text: &str) -> Option<Option<i64>> {
    if text.is_empty() { Some(None) } else { text.parse::<u16>().ok().map(|number| Some(i64::from(number))) }
}

/// `hhmmss.sss` in milliseconds.
fn time_of_day(text: &str) -> Option<Option<i64>> {
    if text.is_empty() {
        return Some(None);
    }
    let hours: i64 = pair(text, 0, 23)?;
    let minutes: i64 = pair(text, 2, 59)?;
    let seconds = digits(text.get(4..)?).filter(|seconds| *seconds < 61.0)?;
    Some(Some((hours * 60 + minutes) * 60_000 + (seconds * 1_000.0).round() as i64))
}

/// `ddmmyy` in milliseconds since 1970. The years are 1980 to 2079.
fn day(text: &str) -> Option<Option<i64>> {
    if text.is_empty() {
        return Some(None);
    }
    let (day, month, year) = (pair(text, 0, 31)?, pair(text, 2, 12)?, pair(text, 4, 99)?);
    let year = if year >= 80 { 1900 + year } else { 2000 + year };
    let date = NaiveDate::from_ymd_opt(year as i32, month as u32, day as u32).filter(|_| text.len() == 6)?;
    Some(Some(date.and_hms_opt(0, 0, 0)?.and_utc().timestamp_millis()))
}

/// Two digits at a place.
fn pair(text: &str, at: usize, most: i64) -> Option<i64> {
    let text = text.get(at..at + 2).filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))?;
    text.parse().ok().filter(|number| *number <= most)
}
