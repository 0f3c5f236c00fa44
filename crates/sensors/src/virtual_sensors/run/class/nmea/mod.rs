//! The class GPSNMEA: sentences of NMEA 0183 in a text become one position.
//!
//! The form of the sentences is that of the public descriptions of NMEA 0183, version 4.

mod sentence;

use super::super::counters::Counters;
use super::super::named_row::NamedRow;
use crate::virtual_sensors::plan::NMEA_FIELDS;
use crate::virtual_sensors::sql::Datum;
use sentence::Fix;

/// The field that GSN's wrapper of serial lines gives.
const RAW_PACKET: &str = "raw_packet";

/// The position that the text of a row says; `None` if it says none. Sentences that cannot be read are counted.
pub(super) fn row(row: &NamedRow, counters: &mut Counters) -> Result<Option<NamedRow>, String> {
    let raw = row.fields.iter().find(|(name, _)| name == RAW_PACKET).or_else(|| row.fields.first());
    let text = match raw {
        Some((_, Datum::Text(text))) => text,
        Some((_, Datum::Null)) | None => {
            counters.rows_without_position += 1;
            return Ok(None);
        }
        Some((name, other)) => {
            return Err(format!("field {name:?}: {other} is not text with sentences of NMEA 0183"));
        }
    };
    let (fix, refused) = fix(text);
    counters.sentences_refused += refused;
    if fix.latitude.is_none() || fix.longitude.is_none() {
        counters.rows_without_position += 1;
        return Ok(None);
    }
    Ok(Some(NamedRow { timed: row.timed, fields: fields(&fix) }))
}

/// What the sentences of a text say together, and how many cannot be read.
fn fix(text: &str) -> (Fix, u64) {
    let (mut fix, mut refused) = (Fix::default(), 0);
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if fix.add(line).is_none() {
            refused += 1;
        }
    }
    (fix, refused)
}

fn fields(fix: &Fix) -> Vec<(String, Datum)> {
    let number = |number: Option<f64>| number.map_or(Datum::Null, Datum::Float);
    let whole = |number: Option<i64>| number.map_or(Datum::Null, Datum::Int);
    let values = [
        number(fix.latitude),
        number(fix.longitude),
        number(fix.altitude_m),
        number(fix.speed_kmh),
        number(fix.course),
        whole(fix.time_ms),
        whole(fix.satellites),
        number(fix.hdop),
    ];
    NMEA_FIELDS.into_iter().map(str::to_owned).zip(values).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Fix, u64) {
        fix(text)
    }

    #[test]
    fn rmc_and_gga_say_one_position() {
        let text = "$GPGGA,123519,4807.038,N,01131.000,E,1,08,0.9,545.4,M,46.9,M,,*47\r\n\
                    $GPRMC,123519,A,4807.038,N,01131.000,E,022.4,084.4,230394,003.1,W*6A\r\n";
        let (fix, refused) = read(text);
        assert_eq!(refused, 0);
        let near = |a: Option<f64>, b: f64| assert!((a.unwrap() - b).abs() < 1e-9, "{a:?} {b}");
        near(fix.latitude, 48.0 + 7.038 / 60.0);
        near(fix.longitude, 11.0 + 31.0 / 60.0);
        near(fix.altitude_m, 545.4);
        near(fix.speed_kmh, 22.4 * 1.852);
        near(fix.course, 84.4);
        near(fix.hdop, 0.9);
        assert_eq!((fix.satellites, fix.time_ms), (Some(8), Some(764_426_119_000)));
    }

    #[test]
    fn south_and_west_are_negative_and_any_talker_speaks() {
        let (fix, refused) = read("$GNGLL,3723.2475,S,12158.3416,W,161229.487,A,A*42");
        assert_eq!(refused, 0);
        assert!((fix.latitude.unwrap() + 37.0 + 23.2475 / 60.0).abs() < 1e-9);
        assert!((fix.longitude.unwrap() + 121.0 + 58.3416 / 60.0).abs() < 1e-9);
    }

    #[test]
    fn a_speed_is_known_from_vtg() {
        let (fix, refused) = read("$GPVTG,054.7,T,034.4,M,005.5,N,010.2,K*48");
        assert_eq!((refused, fix.speed_kmh, fix.course), (0, Some(10.2), Some(54.7)));
    }

    #[test]
    fn sentences_that_cannot_be_read_are_counted() {
        let bad = [
            "$GPRMC,123519,A,4807.038,N,01131.000,E,022.4,084.4,230394,003.1,W*6B",
            "$GPRMC,123519,A,4807.038,N,01131.000,E,022.4,084.4,230394,003.1,W",
            "GPRMC,123519,A,4807.038,N,01131.000,E,022.4,084.4,230394,003.1,W*6A",
            "$GPRMC,123519*+A",
            "$*00",
            "$GPRMC,123519,A,4807.0é8,N,01131.000,E,022.4,084.4,230394,003.1,W*6A",
        ];
        for line in bad {
            let (fix, refused) = read(line);
            assert_eq!((refused, fix.latitude), (1, None), "{line}");
        }
    }

    #[test]
    fn a_receiver_without_a_fix_says_no_position() {
        for line in ["$GPRMC,225446,V,4916.45,N,12311.12,W,000.5,054.7,191194,020.3,E*7F", "$GPGSV,1,1,00*79"]
        {
            let (fix, refused) = read(line);
            assert_eq!((refused, fix.latitude), (0, None), "{line}");
        }
    }
}
