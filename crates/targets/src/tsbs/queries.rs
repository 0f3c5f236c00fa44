//! The thirteen queries, in InfluxQL. Fleets, trucks and windows of time are drawn again for each.

use load::dataset::Random;

use super::lines::Times;
use super::trucks::FLEETS;

/// The queries, by TSBS's names.
pub(super) const NAMES: [&str; 13] = [
    "last-loc",
    "single-last-loc",
    "low-fuel",
    "high-load",
    "stationary-trucks",
    "long-driving-sessions",
    "long-daily-sessions",
    "avg-vs-projected-fuel-consumption",
    "avg-daily-driving-duration",
    "avg-daily-driving-session",
    "avg-load",
    "daily-activity",
    "breakdown-frequency",
];

const MINUTE_MS: i64 = 60_000;
const HOUR_MS: i64 = 60 * MINUTE_MS;
/// The longest window of a query.
pub(super) const WINDOW_MS_MAX: i64 = 24 * HOUR_MS;

/// What queries ask about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Subject {
    pub(super) times: Times,
    pub(super) trucks: u64,
    /// TSBS's text where ours differs: see [`query`].
    pub(super) compat: bool,
}

/// The text of a query.
///
/// With `compat` two texts are those of TSBS: `last-loc` has the first location of each truck instead of the last one, and
/// `avg-daily-driving-session` writes the sessions into a measurement and reads that.
pub(super) fn query(name: &str, subject: &Subject, random: &mut Random) -> String {
    let fleet = FLEETS[random.below(FLEETS.len() as u64) as usize];
    let (start, end) = (subject.times.start_ms, subject.times.end_ms());
    let all = format!("time >= {start}ms AND time < {end}ms");
    match name {
        "last-loc" => {
            let order = if subject.compat { "ASC" } else { "DESC" };
            format!(
                r#"SELECT "latitude", "longitude" FROM "readings" WHERE "fleet" = '{fleet}' GROUP BY "name", "driver" ORDER BY "time" {order} LIMIT 1"#
            )
        }
        "single-last-loc" => format!(
            r#"SELECT "latitude", "longitude" FROM "readings" WHERE "name" = 'truck_{}' GROUP BY "name", "driver" ORDER BY "time" DESC LIMIT 1"#,
            random.below(subject.trucks)
        ),
        "low-fuel" => format!(
            r#"SELECT "name", "driver", "fuel_state" FROM "diagnostics" WHERE "fuel_state" <= 0.1 AND "fleet" = '{fleet}' GROUP BY "name" ORDER BY "time" DESC LIMIT 1"#
        ),
        "high-load" => format!(
            r#"SELECT "name", "driver", "current_load", "load_capacity" FROM (SELECT "current_load", "load_capacity" FROM "diagnostics" WHERE fleet = '{fleet}' GROUP BY "name", "driver" ORDER BY "time" DESC LIMIT 1) WHERE "current_load" >= 0.9 * "load_capacity" GROUP BY "name" ORDER BY "time" DESC"#
        ),
        "stationary-trucks" => {
            let from = end - 10 * MINUTE_MS;
            format!(
                r#"SELECT "name", "driver" FROM (SELECT mean("velocity") AS mean_velocity FROM "readings" WHERE time > {from}ms AND time <= {end}ms GROUP BY time(10m), "name", "driver", "fleet" LIMIT 1) WHERE "fleet" = '{fleet}' AND "mean_velocity" < 1 GROUP BY "name""#
            )
        }
        // A rest of 5 minutes an hour leaves 22 drives of ten minutes.
        "long-driving-sessions" => sessions(fleet, window(subject.times, 4 * HOUR_MS, random), 22),
        // A rest of 35 minutes an hour leaves 60.
        "long-daily-sessions" => sessions(fleet, window(subject.times, WINDOW_MS_MAX, random), 60),
        "avg-vs-projected-fuel-consumption" => fuel(),
        "avg-daily-driving-duration" => format!(
            r#"SELECT count("mv") / 6 AS "hours driven" FROM (SELECT mean("velocity") AS "mv" FROM "readings" WHERE {all} GROUP BY time(10m), "fleet", "name", "driver") WHERE {all} GROUP BY time(1d), "fleet", "name", "driver""#
        ),
        "avg-daily-driving-session" => driving_sessions(&all, subject.compat),
        "avg-load" => r#"SELECT mean("ml") AS mean_load_percentage FROM (SELECT "current_load" / "load_capacity" AS "ml" FROM "diagnostics" GROUP BY "name", "fleet", "model") GROUP BY "fleet", "model""#.to_owned(),
        "daily-activity" => format!(
            r#"SELECT count("ms") / 144 FROM (SELECT mean("status") AS ms FROM "diagnostics" WHERE {all} GROUP BY time(10m), "model", "fleet") WHERE {all} AND "ms" < 1 GROUP BY time(1d), "model", "fleet""#
        ),
        "breakdown-frequency" => format!(
            r#"SELECT count("state_changed") FROM (SELECT difference("broken_down") AS "state_changed" FROM (SELECT floor(2 * (sum("nzs") / count("nzs"))) / floor(2 * (sum("nzs") / count("nzs"))) AS "broken_down" FROM (SELECT "model", "status" / "status" AS nzs FROM "diagnostics" WHERE {all}) WHERE {all} GROUP BY time(10m), "model") GROUP BY "model") WHERE "state_changed" = 1 GROUP BY "model""#
        ),
        other => unreachable!("BUG: the names of queries are checked: {other}"),
    }
}

/// The query whose answer the run compares with what it has written.
pub(super) fn fuel() -> String {
    r#"SELECT mean("fuel_consumption") AS "mean_fuel_consumption", mean("nominal_fuel_consumption") AS "nominal_fuel_consumption" FROM "readings" WHERE "velocity" > 1 GROUP BY "fleet""#.to_owned()
}

/// A window of a length within the times of the data; all of them if they are shorter.
fn window(times: Times, length_ms: i64, random: &mut Random) -> (i64, i64) {
    let room = (times.end_ms() - times.start_ms - length_ms).max(0).unsigned_abs();
    let from = times.start_ms + random.below(room + 1).cast_signed();
    (from, (from + length_ms).min(times.end_ms()))
}

/// Trucks that drove in more than `most` of the ten minutes of a window.
fn sessions(fleet: &str, (from, until): (i64, i64), most: u32) -> String {
    format!(
        r#"SELECT "name", "driver" FROM (SELECT count(*) AS ten_min FROM (SELECT mean("velocity") AS mean_velocity FROM readings WHERE "fleet" = '{fleet}' AND time > {from}ms AND time <= {until}ms GROUP BY time(10m), "name", "driver") WHERE "mean_velocity" > 1 GROUP BY "name", "driver") WHERE ten_min_mean_velocity > {most}"#
    )
}

/// The minutes from a start of a drive to its end: where whether a truck drives changes.
fn driving_sessions(all: &str, compat: bool) -> String {
    let into = if compat { r#"INTO "driving_sessions" "# } else { "" };
    let sessions = format!(
        r#"SELECT "elapsed" {into}FROM (SELECT difference("difka"), elapsed("difka", 1m) FROM (SELECT "difka" FROM (SELECT difference("mv") AS difka FROM (SELECT floor(mean("velocity") / 10) / floor(mean("velocity") / 10) AS "mv" FROM "readings" WHERE "name" != '' AND {all} GROUP BY time(10m), "name" fill(0)) GROUP BY "name") WHERE "difka" != 0 GROUP BY "name") GROUP BY "name") WHERE "difference" = -2 GROUP BY "name""#
    );
    match compat {
        true => format!(
            r#"{sessions}; SELECT mean("elapsed") FROM "driving_sessions" WHERE {all} GROUP BY time(1d), "name""#
        ),
        false => format!(r#"SELECT mean("elapsed") FROM ({sessions}) WHERE {all} GROUP BY time(1d), "name""#),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMES: Times = Times { start_ms: 1_451_606_400_000, interval_ms: 10_000, steps: 2 * 8_640 };

    #[test]
    fn every_query_has_a_text_and_draws_what_it_asks_about() {
        let subject = Subject { times: TIMES, trucks: 10, compat: false };
        let mut random = Random::new(1);
        for name in NAMES {
            let texts: std::collections::BTreeSet<String> =
                (0..50).map(|_| query(name, &subject, &mut random)).collect();
            let draws = ["loc", "low", "high", "stationary", "long"].iter().any(|part| name.contains(part));
            assert_eq!(texts.len() > 1, draws, "{name}");
            for text in texts {
                assert_eq!(text.matches('(').count(), text.matches(')').count(), "{text}");
                assert!(text.starts_with("SELECT ") && !text.contains(';'), "{text}");
            }
        }
        let compat = Subject { compat: true, ..subject };
        assert!(
            query("avg-daily-driving-session", &compat, &mut random)
                .contains(r#"INTO "driving_sessions" FROM"#)
        );
        assert!(query("last-loc", &compat, &mut random).contains("ASC LIMIT 1"));
    }

    #[test]
    fn a_window_lies_within_the_data() {
        let mut random = Random::new(2);
        for _ in 0..100 {
            let (from, until) = window(TIMES, 4 * HOUR_MS, &mut random);
            assert!(from >= TIMES.start_ms && until <= TIMES.end_ms() && until - from == 4 * HOUR_MS);
        }
        let short = Times { steps: 6, ..TIMES };
        assert_eq!(window(short, HOUR_MS, &mut random), (TIMES.start_ms, short.end_ms()));
    }
}
