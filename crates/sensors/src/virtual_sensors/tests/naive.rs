//! Windows and groups against a model that looks at the whole history for each execution.

use proptest::prelude::*;

use super::*;

/// Quarters are exact, so that any order of additions gives the same sum.
type Element = (i64, i64, Option<i64>);

#[derive(Debug, Clone, Copy)]
enum Extent {
    Count(i64),
    Millis(i64),
}

#[derive(Debug, Clone, Copy)]
struct Kind {
    size: Extent,
    /// `None` moves on each element.
    slide: Option<Extent>,
}

impl Kind {
    fn words(self) -> String {
        let text = |extent| match extent {
            Extent::Count(count) => count.to_string(),
            Extent::Millis(millis) => format!("{}s", millis / 1000),
        };
        let slide = self.slide.map(|slide| format!(" slide='{}'", text(slide))).unwrap_or_default();
        format!("storage-size='{}'{slide}", text(self.size))
    }

    /// The elements in the window at a time, oldest first.
    fn content(self, seen: &[Element], at: i64) -> Vec<Element> {
        let by_time =
            matches!((self.size, self.slide), (Extent::Millis(_), _) | (_, Some(Extent::Millis(_))));
        let mut there: Vec<Element> = seen.to_vec();
        if by_time {
            there.retain(|(timed, _, _)| *timed <= at);
            there.sort_by_key(|(timed, _, _)| *timed);
        }
        match self.size {
            Extent::Count(size) => there.split_off(there.len().saturating_sub(size as usize)),
            Extent::Millis(size) => there.into_iter().filter(|(timed, _, _)| *timed >= at - size).collect(),
        }
    }

    /// What the window holds at each of its moves, and the time of the execution.
    fn moves(self, history: &[Element], end: i64) -> Vec<(i64, Vec<Element>)> {
        let mut moves = Vec::new();
        let Some((_, first, _)) = history.first() else { return moves };
        if let Some(Extent::Millis(slide)) = self.slide {
            let mut at = first + if let Extent::Millis(size) = self.size { size } else { slide };
            while at <= end {
                let seen: Vec<Element> = history.iter().copied().filter(|(_, now, _)| *now <= at).collect();
                moves.push((at, self.content(&seen, at)));
                at += slide;
            }
            return moves;
        }
        let first_move = match (self.size, self.slide) {
            (Extent::Count(size), Some(Extent::Count(_))) => size,
            (_, Some(Extent::Count(slide))) => slide,
            _ => 1,
        };
        let step = if let Some(Extent::Count(slide)) = self.slide { slide } else { 1 };
        for count in 1..=history.len() as i64 {
            if count >= first_move && (count - first_move) % step == 0 {
                let seen = &history[..count as usize];
                let newest = seen.iter().map(|(timed, _, _)| *timed).max().unwrap_or_default();
                moves.push((seen[count as usize - 1].1, self.content(seen, newest)));
            }
        }
        moves
    }
}

/// The aggregates of some values, as text.
fn aggregates(values: &[Option<i64>]) -> String {
    let quarter = |x: i64| format!("{:?}", x as f64 / 4.0);
    let given: Vec<i64> = values.iter().copied().flatten().collect();
    let sum: i64 = given.iter().sum();
    let mut distinct = given.clone();
    distinct.sort_unstable();
    distinct.dedup();
    let or_none = |value: Option<&i64>| value.map_or(String::new(), |x| quarter(*x));
    let end = |value: Option<&Option<i64>>| or_none(value.and_then(|x| x.as_ref()));
    let average =
        if given.is_empty() { String::new() } else { format!("{:?}", sum as f64 / 4.0 / given.len() as f64) };
    [
        given.len().to_string(),
        or_none(Some(&sum).filter(|_| !given.is_empty())),
        average,
        or_none(given.iter().min()),
        or_none(given.iter().max()),
        distinct.len().to_string(),
        end(values.first()),
        end(values.last()),
    ]
    .join(" ")
}

const AGGREGATES: &str = "count(x) as n, sum(x) as s, avg(x) as a, min(x) as lo, max(x) as hi, count(distinct x) as d, \
                          first(x) as f, last(x) as l";

const OUTPUT: [(&str, &str); 8] = [
    ("n", "bigint"),
    ("s", "double"),
    ("a", "double"),
    ("lo", "double"),
    ("hi", "double"),
    ("d", "bigint"),
    ("f", "double"),
    ("l", "double"),
];

fn run(xml: &str, history: &[Element], end: i64) -> Vec<String> {
    let mut run = Run::new(xml);
    for (timed, now, x) in history {
        let x = x.map_or(Datum::Null, |x| Datum::Float(x as f64 / 4.0));
        run.element_of(FIRST, *timed, *now, &[("x", x)]);
    }
    run.tick(end);
    run.take()
}

fn extent() -> impl Strategy<Value = Extent> {
    prop_oneof![
        (1_i64..6).prop_map(Extent::Count),
        (1_i64..6).prop_map(|seconds| Extent::Millis(seconds * 1000))
    ]
}

fn kind() -> impl Strategy<Value = Kind> {
    let slide = prop::option::of(
        extent().prop_filter("a slide of one is not a slide", |slide| !matches!(slide, Extent::Count(1))),
    );
    (extent(), slide).prop_map(|(size, slide)| Kind { size, slide })
}

/// Elements whose clock continues, and whose times are up to three seconds behind it.
fn history() -> impl Strategy<Value = Vec<Element>> {
    let element = (
        0_i64..2500,
        prop_oneof![3 => Just(0_i64), 1 => 0..3000_i64],
        prop::option::weighted(0.9, -20_i64..20),
    );
    prop::collection::vec(element, 0..60).prop_map(|elements| {
        let mut now = 100_000;
        let element = |(step, behind, x): (i64, i64, Option<i64>)| {
            now += step;
            (now - behind, now, x)
        };
        elements.into_iter().map(element).collect()
    })
}

fn end(history: &[Element]) -> i64 {
    history.last().map_or(0, |(_, now, _)| now + 7000)
}

proptest! {
    #[test]
    fn groups_of_a_source_are_those_of_the_model(kind in kind(), history in history()) {
        let query = format!("select {AGGREGATES} from wrapper where x is null or x > -2");
        let xml = one_source(&kind.words(), &query, "select * from a", &OUTPUT);
        let visible = |x: &Option<i64>| x.is_none_or(|x| x > -8);
        let line = |(at, window): (i64, Vec<Element>)| {
            let values: Vec<_> = window.into_iter().map(|(_, _, x)| x).filter(visible).collect();
            format!("{at}: {}", aggregates(&values))
        };
        let expected: Vec<_> = kind.moves(&history, end(&history)).into_iter().map(line).collect();
        prop_assert_eq!(run(&xml, &history, end(&history)), expected);
    }

    #[test]
    fn groups_of_a_stream_are_those_of_the_model(kind in kind(), history in history(), clock in any::<bool>()) {
        let source = "select x * 2 as x from wrapper where x is null or x > -2";
        // A query that reads the clock is computed over all rows.
        let clock = if clock { " where now_millis() > 0" } else { "" };
        let query = format!("select {AGGREGATES} from a{clock}");
        let xml = one_source(&kind.words(), source, &query, &OUTPUT);
        let line = |(at, window): (i64, Vec<Element>)| {
            let values = window.into_iter().map(|(_, _, x)| x).filter(|x| x.is_none_or(|x| x > -8));
            let values: Vec<_> = values.map(|x| x.map(|x| x * 2)).collect();
            (!values.is_empty()).then(|| format!("{at}: {}", aggregates(&values)))
        };
        let expected: Vec<_> = kind.moves(&history, end(&history)).into_iter().filter_map(line).collect();
        prop_assert_eq!(run(&xml, &history, end(&history)), expected);
    }

    #[test]
    fn keys_of_groups_come_and_go(kind in kind(), history in history()) {
        let query = "select floor(x) as lo, count(*) as n, max(x) as hi from a where x is not null group by floor(x)";
        let output = [("lo", "double"), ("n", "bigint"), ("hi", "double")];
        let xml = one_source(&kind.words(), "select * from wrapper", query, &output);
        let lines = |(at, window): (i64, Vec<Element>)| {
            let mut groups: BTreeMap<i64, (usize, i64)> = BTreeMap::new();
            for x in window.into_iter().filter_map(|(_, _, x)| x) {
                let group = groups.entry(x.div_euclid(4)).or_insert((0, i64::MIN));
                *group = (group.0 + 1, group.1.max(x));
            }
            let line = move |(key, (count, most)): (i64, (usize, i64))| {
                format!("{at}: {:?} {count} {:?}", key as f64, most as f64 / 4.0)
            };
            groups.into_iter().map(line).collect::<Vec<_>>()
        };
        let expected: Vec<_> = kind.moves(&history, end(&history)).into_iter().flat_map(lines).collect();
        let given = run(&xml, &history, end(&history));
        prop_assert_eq!(given, expected);
    }

    #[test]
    fn rows_are_those_of_the_model(kind in kind(), history in history()) {
        let xml = one_source(&kind.words(), "select x from wrapper", "select x from a where x >= 0", &[("x", "double")]);
        let lines = |(at, window): (i64, Vec<Element>)| {
            let values = window.into_iter().rev().filter_map(|(_, _, x)| x).filter(|x| *x >= 0);
            values.map(|x| format!("{at}: {:?}", x as f64 / 4.0)).collect::<Vec<_>>()
        };
        let expected: Vec<_> = kind.moves(&history, end(&history)).into_iter().flat_map(lines).collect();
        prop_assert_eq!(run(&xml, &history, end(&history)), expected);
    }
}
