//! Scripts: points, a query, its answer.
//!
//! A point is a line `metric seconds value tag=value`, an answer a line `metric{tags}[aggregated tags] seconds:value`. Seconds count
//! from the first hour of 2013. A value with a point is a float. The expected values are computed by hand from what OpenTSDB
//! documents about aggregators, downsampling, rates and filters.

use std::fmt::Write;
use std::ops::ControlFlow;
use std::sync::Arc;

use model::{Batch, Namespace, SeriesKey, Timestamp, ValueRef};
use store::{Durability, MemoryStore, Writer};

use super::{
    Answer, LastPoint, LookupText, Metric, Number, Query, Selection, Tags, Values, last_points, run, series,
    sub_query, tsuid_query, zone,
};
use crate::{Access, StoreSource};

/// 2013-01-01T00:00:00Z.
const EPOCH: i64 = 1_356_998_400;

/// Two series with different times.
const TWO: &str = "m 0 10 host=a
m 20 30 host=a
m 10 5 host=b
m 30 15 host=b";

const HOSTS: &str = "m 0 1 host=web01,zone=x
m 0 2 host=web02,zone=x
m 0 4 host=db01,zone=x
m 0 8 host=db01,rack=r1,zone=x
m 0 16 zone=x";

const FOUR: &str = "m 0 0 host=a
m 0 100 host=b
m 0 200 host=c
m 0 300 host=d";

const GAP: &str = "m 0 1 host=a
m 30 3 host=a
m 120 5 host=a";

fn source(points: &str) -> StoreSource {
    let store = MemoryStore::new();
    let mut batch = Batch::new();
    for line in points.lines() {
        let parts: Vec<&str> = line.split(' ').collect();
        let [metric, seconds, value, tags] = parts.as_slice() else { panic!("{line} is a point") };
        let tags: Vec<(&str, &str)> = tags.split(',').map(|tag| tag.split_once('=').unwrap()).collect();
        let series = store.series(&SeriesKey::new(*metric, &tags).unwrap()).unwrap();
        let mut row = batch.builder();
        row.field(
            "value",
            match value.contains('.') {
                true => ValueRef::F64(value.parse().unwrap()),
                false => ValueRef::I64(value.parse().unwrap()),
            },
        );
        row.row(series, Timestamp::from_micros((EPOCH + seconds.parse::<i64>().unwrap()) * 1_000_000));
        row.finish();
    }
    store.append(&batch, Durability::Memory).unwrap();
    StoreSource::new(Arc::new(store), Namespace::DEFAULT, Arc::new(|_| Access::Everything))
}

fn named(metric: &str, tags: &Tags) -> String {
    let tags: Vec<String> = tags.iter().map(|(name, value)| format!("{name}={value}")).collect();
    format!("{metric}{{{}}}", tags.join(","))
}

fn shown(answer: &Answer) -> String {
    let mut text = named(&answer.metric, &answer.tags);
    write!(text, "[{}]", answer.aggregate_tags.join(",")).unwrap();
    for (at, millis) in answer.line.times.iter().enumerate() {
        let seconds = millis / 1000 - EPOCH;
        match &answer.line.values {
            Values::Integers(values) => write!(text, " {seconds}:{}", values[at]).unwrap(),
            Values::Floats(values) => write!(text, " {seconds}:{:?}", values[at]).unwrap(),
        }
    }
    text
}

/// The answer to a query `start end m`, or `start end zone m`; an `m` that begins with `tsuid=` names series.
fn answer(points: &str, query: &str) -> String {
    let parts: Vec<&str> = query.split(' ').collect();
    let (zone_name, m) = match parts.as_slice() {
        [_, _, m] => ("UTC", *m),
        [_, _, zone_name, m] => (*zone_name, *m),
        _ => panic!("{query} is a query"),
    };
    let at = |text: &str| (EPOCH + text.parse::<i64>().unwrap()) * 1000;
    let sub = m.strip_prefix("tsuid=").map_or_else(|| sub_query(m), tsuid_query);
    let mut lines = Vec::new();
    let result = sub.and_then(|sub| {
        let zone = zone(zone_name)?;
        let query =
            Query { start: at(parts[0]), end: at(parts[1]), zone, use_calendar: false, queries: vec![sub] };
        run(&query, &source(points), &mut |answer| {
            lines.push(shown(&answer));
            ControlFlow::Continue(())
        })
    });
    match result {
        Ok(()) => lines.join("\n"),
        Err(error) => format!("error: {error}"),
    }
}

#[track_caller]
fn golden(points: &str, cases: &[(&str, &str)]) {
    for (query, expected) in cases {
        assert_eq!(answer(points, query), *expected, "{query}");
    }
}

#[test]
fn a_series_gives_the_values_on_lines_between_its_points() {
    golden(
        TWO,
        &[
            ("0 30 sum:m", "m{}[host] 0:10 10:25 20:40 30:15"),
            ("0 30 min:m", "m{}[host] 0:10 10:5 20:10 30:15"),
            ("0 30 max:m", "m{}[host] 0:10 10:20 20:30 30:15"),
            // The average of integers is an integer: 25 / 2.
            ("0 30 avg:m", "m{}[host] 0:10 10:12 20:20 30:15"),
            ("0 30 diff:m", "m{}[host] 0:0 10:-15 20:-20 30:0"),
        ],
    );
    let floats = TWO.replace(" 10 ", " 10.0 ").replace("20 30 ", "20 30.0 ");
    let floats = floats.replace("m 10.0 5 ", "m 10 5.0 ").replace("30 15 ", "30 15.0 ");
    golden(
        &floats,
        &[
            ("0 30 avg:m", "m{}[host] 0:10.0 10:12.5 20:20.0 30:15.0"),
            // Of 20 and 5, and of 30 and 10.
            ("0 30 dev:m", "m{}[host] 0:0.0 10:7.5 20:10.0 30:0.0"),
        ],
    );
}

#[test]
fn some_aggregators_see_another_value_between_points() {
    golden(
        TWO,
        &[
            ("0 30 count:m", "m{}[host] 0:1 10:2 20:2 30:1"),
            ("0 30 zimsum:m", "m{}[host] 0:10 10:5 20:30 30:15"),
            ("0 30 mimmax:m", "m{}[host] 0:10 10:5 20:30 30:15"),
            ("0 30 mimmin:m", "m{}[host] 0:10 10:5 20:30 30:15"),
            ("0 30 pfsum:m", "m{}[host] 0:10 10:15 20:35 30:15"),
        ],
    );
}

#[test]
fn none_combines_nothing() {
    golden(TWO, &[("0 30 none:m", "m{host=a}[] 0:10 20:30\nm{host=b}[] 10:5 30:15")]);
}

#[test]
fn only_points_from_the_start_to_the_end_are_shown() {
    golden(
        TWO,
        &[("10 20 sum:m", "m{}[host] 10:25 20:40"), ("10 20 none:m", "m{host=a}[] 20:30\nm{host=b}[] 10:5")],
    );
}

#[test]
fn an_interval_becomes_one_value_at_its_start() {
    let points = "m 0 1 host=a\nm 10 2 host=a\nm 20 3 host=a\nm 30 4 host=a\nm 60 10 host=a\nm 70 20 host=a";
    golden(
        points,
        &[
            ("0 119 sum:1m-avg:m", "m{host=a}[] 0:2.5 60:15.0"),
            ("0 119 sum:1m-sum:m", "m{host=a}[] 0:10.0 60:30.0"),
            ("0 119 sum:1m-count:m", "m{host=a}[] 0:4.0 60:2.0"),
            ("0 119 sum:20s-max:m", "m{host=a}[] 0:2.0 20:4.0 60:20.0"),
            // 4 is shown at 20, where its interval begins.
            ("0 119 sum:20s-last:m", "m{host=a}[] 0:2.0 20:4.0 60:20.0"),
        ],
    );
}

#[test]
fn series_are_downsampled_before_they_are_combined() {
    let points = "m 0 1 host=a\nm 10 3 host=a\nm 60 5 host=a\nm 20 10 host=b\nm 80 20 host=b";
    golden(
        points,
        &[
            ("0 119 sum:1m-avg:m", "m{}[host] 0:12.0 60:25.0"),
            ("0 119 max:1m-sum:m", "m{}[host] 0:10.0 60:20.0"),
        ],
    );
}

#[test]
fn a_fill_policy_stands_for_an_interval_without_values() {
    golden(
        GAP,
        &[
            ("0 179 sum:1m-sum:m", "m{host=a}[] 0:4.0 120:5.0"),
            ("0 179 sum:1m-sum-none:m", "m{host=a}[] 0:4.0 120:5.0"),
            ("0 179 sum:1m-sum-nan:m", "m{host=a}[] 0:4.0 60:NaN 120:5.0"),
            ("0 179 sum:1m-sum-null:m", "m{host=a}[] 0:4.0 60:NaN 120:5.0"),
            ("0 179 sum:1m-sum-zero:m", "m{host=a}[] 0:4.0 60:0.0 120:5.0"),
        ],
    );
}

#[test]
fn an_interval_of_all_is_the_time_of_the_query() {
    let points = "m 0 1 host=a\nm 10 2 host=a\nm 20 3 host=a\nm 30 7 host=a";
    golden(
        points,
        &[
            ("0 40 sum:0all-sum:m", "m{host=a}[] 0:13.0"),
            ("5 25 sum:0all-sum:m", "m{host=a}[] 5:5.0"),
            ("5 25 sum:0all-max:m", "m{host=a}[] 5:3.0"),
        ],
    );
}

#[test]
fn a_calendar_day_begins_at_midnight_of_the_zone() {
    // In Shanghai it is 08:00; the day ends after 16 hours.
    let points = "m 0 1 host=a\nm 57599 2 host=a\nm 57600 4 host=a";
    golden(
        points,
        &[
            ("-28800 86400 Asia/Shanghai sum:1dc-sum:m", "m{host=a}[] -28800:3.0 57600:4.0"),
            ("-28800 86400 UTC sum:1dc-sum:m", "m{host=a}[] 0:7.0"),
        ],
    );
}

#[test]
fn a_rate_is_the_change_per_second() {
    let points = "m 0 10 host=a\nm 10 30 host=a\nm 20 20 host=a";
    golden(points, &[("0 30 sum:rate:m", "m{host=a}[] 10:2.0 20:-1.0")]);
    let points = "m 0 10 host=a\nm 10 30 host=a\nm 0 0 host=b\nm 10 50 host=b";
    golden(points, &[("0 30 sum:rate:m", "m{}[host] 10:7.0")]);
}

#[test]
fn a_rate_follows_downsampling() {
    let points = "m 0 10 host=a\nm 30 30 host=a\nm 60 80 host=a";
    golden(points, &[("0 119 sum:1m-avg:rate:m", "m{host=a}[] 60:1.0")]);
}

#[test]
fn a_counter_wraps_around_or_starts_again() {
    let points = "m 0 10 host=a\nm 10 20 host=a\nm 20 10 host=a";
    golden(
        points,
        &[
            ("0 30 sum:rate{counter,100}:m", "m{host=a}[] 10:1.0 20:9.0"),
            ("0 30 sum:rate{counter,100,5}:m", "m{host=a}[] 10:1.0 20:0.0"),
            ("0 30 sum:rate{dropcounter}:m", "m{host=a}[] 10:1.0"),
        ],
    );
}

#[test]
fn a_filter_in_the_first_braces_makes_groups() {
    golden(
        HOSTS,
        &[
            (
                "0 30 sum:m{host=*}",
                "m{host=db01,rack=r1,zone=x}[] 0:12\nm{host=web01,zone=x}[] 0:1\nm{host=web02,zone=x}[] 0:2",
            ),
            (
                "0 30 sum:m{host=literal_or(web01|web02)}",
                "m{host=web01,zone=x}[] 0:1\nm{host=web02,zone=x}[] 0:2",
            ),
            ("0 30 sum:m{host=web02}", "m{host=web02,zone=x}[] 0:2"),
            ("0 30 sum:m{zone=*}{host=wildcard(web*)}", "m{zone=x}[host] 0:3"),
        ],
    );
}

#[test]
fn a_filter_in_the_second_braces_makes_no_groups() {
    golden(
        HOSTS,
        &[
            ("0 30 sum:m{}{host=literal_or(web01|web02)}", "m{zone=x}[host] 0:3"),
            ("0 30 sum:m{}{host=wildcard(web*1)}", "m{host=web01,zone=x}[] 0:1"),
            ("0 30 sum:m{}{host=regexp(^web.*2$)}", "m{host=web02,zone=x}[] 0:2"),
            ("0 30 sum:m{}{host=not_literal_or(db01|web01)}", "m{host=web02,zone=x}[] 0:2"),
            ("0 30 sum:m{}{host=iliteral_or(WEB01)}", "m{host=web01,zone=x}[] 0:1"),
            ("0 30 sum:m{}{host=not_key()}", "m{zone=x}[] 0:16"),
            ("0 30 sum:m{}{host=literal_or(none)}", ""),
        ],
    );
}

#[test]
fn explicit_tags_leave_out_series_with_other_tags() {
    golden(
        HOSTS,
        &[
            ("0 30 sum:explicit_tags:m{zone=x}{host=db01}", "m{host=db01,zone=x}[] 0:4"),
            ("0 30 sum:m{zone=x}{host=db01}", "m{host=db01,rack=r1,zone=x}[] 0:12"),
            ("0 30 sum:explicit_tags:m{zone=x}", "m{zone=x}[] 0:16"),
        ],
    );
}

#[test]
fn a_tsuid_names_one_series() {
    golden(
        TWO,
        &[
            ("0 30 tsuid=sum:00016D0004686F7374000162", "m{host=b}[] 10:5 30:15"),
            (
                "0 30 tsuid=sum:00016D0004686F7374000161,00016D0004686F7374000162",
                "m{}[host] 0:10 10:25 20:40 30:15",
            ),
            ("0 30 tsuid=sum:0001", "error: '0001' is not a TSUID of this server"),
        ],
    );
}

#[test]
fn percentiles_are_estimated_in_three_ways() {
    golden(
        FOUR,
        &[
            ("0 30 p50:m", "m{}[host] 0:150"),
            ("0 30 p75:m", "m{}[host] 0:275"),
            ("0 30 p99:m", "m{}[host] 0:300"),
            ("0 30 ep75r3:m", "m{}[host] 0:200"),
            ("0 30 ep75r7:m", "m{}[host] 0:225"),
        ],
    );
}

#[test]
fn a_wrong_query_says_what_is_wrong() {
    golden(
        TWO,
        &[
            ("0 30 sum:nope", "error: No such name for 'metrics': 'nope'"),
            ("0 30 fast:m", "error: No such aggregation function: fast"),
            ("0 30 sum:1m-fast:m", "error: No such downsampling function: fast"),
            ("0 30 sum:1m-none:m", "error: cannot use the NONE aggregator for downsampling"),
            ("0 30 Mars/Olympus sum:m", "error: Invalid timezone name: Mars/Olympus"),
            (
                "30 0 sum:m",
                "error: End time [1356998400000] must be greater than or equal to the start time [1356998430000]",
            ),
        ],
    );
}

#[test]
fn the_last_point_of_each_series_is_known() {
    let last = |tags: &Tags, since| {
        let selection = Selection::Metric(Metric::Name("m".into()));
        let shown = |point: &LastPoint| {
            let Number::Integer(value) = point.value else { panic!("the values are integers") };
            format!("{} {}:{value}", named(&point.metric, &point.tags), point.millis / 1000 - EPOCH)
        };
        last_points(&source(TWO), &selection, tags, since).unwrap().iter().map(shown).collect::<Vec<_>>()
    };
    assert_eq!(last(&Tags::new(), None), ["m{host=a} 20:30", "m{host=b} 30:15"]);
    assert_eq!(last(&vec![("host".into(), "b".into())], None), ["m{host=b} 30:15"]);
    assert_eq!(last(&Tags::new(), Some((EPOCH + 25) * 1000)), ["m{host=b} 30:15"]);
}

#[test]
fn a_lookup_gives_the_series_that_have_the_tags() {
    let found = |text| {
        let names = series(&source(HOSTS), &LookupText::parse(text).unwrap(), 100).unwrap();
        let mut names: Vec<String> = names.iter().map(|name| named(&name.metric, &name.tags)).collect();
        names.sort();
        names
    };
    assert_eq!(found("m{host=db01}"), ["m{host=db01,rack=r1,zone=x}", "m{host=db01,zone=x}"]);
    assert_eq!(found("m{rack=*}"), ["m{host=db01,rack=r1,zone=x}"]);
    assert_eq!(found("*{*=web02}"), ["m{host=web02,zone=x}"]);
}
