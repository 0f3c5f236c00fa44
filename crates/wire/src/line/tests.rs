use std::borrow::Cow;

use proptest::prelude::*;

use super::naive::{self, Naive};
use super::*;

fn one(text: &str) -> Result<Line<'_>, LineError> {
    let mut all = lines(text);
    let line = all.next().expect("a line");
    assert_eq!(all.next(), None, "{text}");
    line
}

#[test]
fn a_line_has_a_measurement_tags_fields_and_a_time() {
    let line =
        one("weather,site=north,sensor=s1 temp=21.5,wet=t,n=-3i,m=7u,note=\"a b\" 1465839830100400200")
            .unwrap();
    assert_eq!(line.measurement, "weather");
    assert_eq!(line.tags, [("site".into(), "north".into()), ("sensor".into(), "s1".into())]);
    let fields = [
        ("temp".into(), LineValue::F64(21.5)),
        ("wet".into(), LineValue::Bool(true)),
        ("n".into(), LineValue::I64(-3)),
        ("m".into(), LineValue::U64(7)),
        ("note".into(), LineValue::Text("a b".into())),
    ];
    assert_eq!(line.fields, fields);
    assert_eq!(line.time, Some(1_465_839_830_100_400_200));
    assert_eq!(one("m f=1e3").unwrap().time, None);
}

#[test]
fn backslashes_escape_special_characters() {
    let line = one(r#"my\ table\,x,ta\=g=a\,b\ c,path=C:\dir fi\ eld="say \"yes\" \\ C:\dir",g=1"#).unwrap();
    assert_eq!(line.measurement, "my table,x");
    assert_eq!(line.tags, [("ta=g".into(), "a,b c".into()), ("path".into(), r"C:\dir".into())]);
    assert_eq!(line.fields[0], ("fi eld".into(), LineValue::Text(r#"say "yes" \ C:\dir"#.into())));
    assert_eq!(line.fields.len(), 2);
}

#[test]
fn lines_end_at_breaks_outside_of_texts_and_comments_are_left_out() {
    let text = "# c \"x\nm f=\"one\ntwo\" 1\r\n\n  # more\nm,t=\"q f=2 2\nm f=3";
    let read: Vec<_> = lines(text).map(Result::unwrap).collect();
    assert_eq!(read.len(), 3);
    assert_eq!(read[0].fields[0].1, LineValue::Text("one\ntwo".into()));
    assert_eq!((read[0].time, read[1].tags[0].1.as_ref(), read[2].time), (Some(1), "\"q", None));
    assert_eq!(whole_lines(text), text.len() - "m f=3".len());
    assert_eq!(whole_lines("m f=\"one\ntwo"), 0, "the text may end in what comes next");
}

#[test]
fn reading_goes_on_from_any_position() {
    let body = b"m f=1\n\xff\nm f=\"one\ntwo\"\n# c\nm f=3";
    let texts = |from: usize| {
        let mut lines = Lines::starting_at(body, from);
        let mut read = Vec::new();
        loop {
            let position = lines.position();
            let Some(line) = lines.next_line() else { break };
            read.push((position, line.map_or_else(|bad| bad.at, |line| line.at)));
        }
        assert_eq!(lines.position(), body.len());
        read
    };
    let all = texts(0);
    assert_eq!(all.iter().map(|(_, at)| *at).collect::<Vec<_>>(), [0, 6, 8, 26]);
    for (n, (position, _)) in all.iter().enumerate() {
        let rest: Vec<_> = texts(*position).iter().map(|(_, at)| *at).collect();
        assert_eq!(rest, all[n..].iter().map(|(_, at)| *at).collect::<Vec<_>>());
    }
    assert_eq!(texts(1_000), []);
}

#[test]
fn a_forgotten_quote_does_not_swallow_a_file() {
    let mut text = "m f=\"open 1\n".to_owned();
    while text.len() <= LINE_BYTES_MAX {
        text.push_str("m f=1 2\n");
    }
    let read: Vec<_> = lines(&text).collect();
    assert_eq!(read[0].as_ref().unwrap_err().reason, "unbalanced quotes");
    assert!(read[1..].iter().all(Result::is_ok));
    assert_eq!(read.len(), text.lines().count());
}

#[test]
fn errors_have_their_position() {
    for (text, at, reason) in [
        (",t=1 f=1", 0, "missing measurement"),
        ("m", 1, "missing fields"),
        ("m  ", 3, "missing fields"),
        ("m,t f=1", 3, "missing tag value"),
        ("m,t= f=1", 4, "missing tag value"),
        ("m,t=a=b f=1", 5, "invalid tag format"),
        ("m,t=a\\ f=1 1", 8, "invalid tag format"),
        ("m,=x f=1", 2, "missing tag key"),
        ("m, f=1", 2, "missing tag key"),
        ("m f", 3, "invalid field format"),
        ("m f=1,", 6, "invalid field format"),
        ("m f=1,  g=2", 6, "invalid field format"),
        ("m =1", 2, "missing field key"),
        ("m f=", 4, "missing field value"),
        ("m f=,g=1", 4, "missing field value"),
        ("m f=nan", 4, "invalid number"),
        ("m f=9223372036854775808i", 4, "integer out of range"),
        ("m f=\"x\"y 1", 7, "invalid field format"),
        ("m f=1 12:30", 6, "bad timestamp"),
        ("m f=1 9223372036854775808", 6, "time outside range"),
        ("m f=1 1 2", 8, "point is invalid"),
        ("m f=\"x", 4, "unbalanced quotes"),
    ] {
        assert_eq!(one(text), Err(LineError { at, reason }), "{text}");
    }
}

proptest::proptest! {
    #[test]
    fn any_text_gives_lines_or_errors(text in ".{0,200}") {
        let bytes = whole_lines(&text);
        proptest::prop_assert!(text.is_char_boundary(bytes));
        lines(&text).for_each(drop);
    }
}
/// Lines and bad lines of a body: a good line as its text, a bad one with its number and reason.
fn walk(body: &[u8]) -> Vec<Result<String, (usize, &'static str)>> {
    let (mut lines, mut all) = (Lines::new(body), Vec::new());
    while let Some(line) = lines.next_line() {
        all.push(match line {
            Ok(line) => Ok(line.text.to_owned()),
            Err(bad) => Err((line_number(body, bad.at), bad.error.reason)),
        });
    }
    all
}

#[test]
fn a_body_continues_after_a_bad_line() {
    let good = |text: &str| Ok(text.to_owned());
    let body =
        "m f=1 1\r\n\r\nm f=x 2\r\n\t m f=3 3 \r\n# c\nm f=\"a\nb\",g=? 4\nm,t= f=\"x\ny\" 5\nm f=6 6\r";
    let wanted = [
        good("m f=1 1"),
        Err((3, "invalid boolean")),
        good("m f=3 3 "),
        Err((6, "invalid boolean")),
        Err((8, "missing tag value")),
        good("m f=6 6"),
    ];
    assert_eq!(walk(body.as_bytes()), wanted);
}

#[test]
fn a_stray_quote_costs_its_own_line_only() {
    let body = b"m f=\"open 1\nm f=\"x\" 2\nm f=3 3\nm f=\"open 4\nm f=5 5";
    let first = Lines::new(body).next_line().unwrap().unwrap_err();
    assert_eq!((first.bytes, first.error.at), (&b"m f=\"open 1"[..], 11), "the fault lies in the next line");
    let found = walk(body);
    assert_eq!(found[0], Err((1, "invalid field format")));
    assert_eq!(found[3], Err((4, "unbalanced quotes")));
    assert_eq!(found.iter().flatten().collect::<Vec<_>>(), ["m f=\"x\" 2", "m f=3 3", "m f=5 5"]);
}

#[test]
fn a_line_that_is_not_utf8_is_a_bad_line() {
    let body = b"m f=1 1\n# \xff\nm\xff f=2 2\nm f=\"\xc3\xa4\" 3\nm f=\"\xff\"";
    let wanted = [
        Ok("m f=1 1".to_owned()),
        Err((3, "not UTF-8")),
        Ok("m f=\"\u{e4}\" 3".to_owned()),
        Err((5, "not UTF-8")),
    ];
    assert_eq!(walk(body), wanted);
    let mut lines = Lines::new(body);
    lines.next_line();
    let bad = lines.next_line().unwrap().unwrap_err();
    assert_eq!((bad.bytes, bad.at, bad.error.at), (&b"m\xff f=2 2"[..], 12, 1));
}

#[test]
fn the_raw_series_reaches_up_to_the_fields_and_tags_are_sorted() {
    let mut lines = Lines::new(br"m\ x,b=2,a\==1\,5  f=1,f=2 7");
    let line = lines.next_line().unwrap().unwrap();
    assert_eq!(line.series.raw(), r"m\ x,b=2,a\==1\,5");
    assert_eq!(line.series.measurement(), "m x");
    let pair = |key: &'static str, value: &'static str| (Cow::from(key), Cow::from(value));
    assert_eq!(line.series.sorted_tags().unwrap(), [pair("a=", "1,5"), pair("b", "2")]);
    assert_eq!((line.fields.len(), line.time), (2, Some(7)));
    let mut lines = Lines::new(br"m,a=1,b=1,\a=2,a=2 f=1");
    assert_eq!(lines.next_line().unwrap().unwrap().series.sorted_tags(), Err(DuplicateTag));
}

#[test]
fn a_plain_line_borrows_from_the_body() {
    let mut lines = Lines::new(b"m,t=a f=\"x\" 1");
    let line = lines.next_line().unwrap().unwrap();
    assert!(matches!(line.series.measurement(), Cow::Borrowed("m")));
    assert!(matches!(&line.fields[0], (Cow::Borrowed("f"), LineValue::Text(Cow::Borrowed("x")))));
}

fn owned(line: &Line<'_>) -> Naive {
    let pair = |(key, value): &(Cow<'_, str>, Cow<'_, str>)| (key.to_string(), value.to_string());
    let field = |(key, value): &Field<'_>| {
        let value = match value {
            LineValue::Text(text) => LineValue::Text(text.to_string().into()),
            LineValue::F64(value) => LineValue::F64(*value),
            LineValue::I64(value) => LineValue::I64(*value),
            LineValue::U64(value) => LineValue::U64(*value),
            LineValue::Bool(value) => LineValue::Bool(*value),
        };
        (key.to_string(), value)
    };
    let fields = line.fields.iter().map(field).collect();
    (line.measurement.to_string(), line.tags.iter().map(pair).collect(), fields, line.time)
}

fn escaped(name: &str, special: &str) -> String {
    name.chars().flat_map(|c| special.contains(c).then_some('\\').into_iter().chain([c])).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// Text of the characters that matter, so that a good part of it is a line.
    #[test]
    fn a_line_means_what_the_grammar_says(line in "[m,t]{1,4}[,= \\\\\"ab1]{0,8} [f= ,\"\\\\1it.e-]{0,12} {0,2}[-12]{0,3} ?") {
        let line = line.trim_start_matches(' ');
        prop_assume!(!line.is_empty());
        let read = lines(line).next().unwrap();
        prop_assert_eq!(read.as_ref().ok().map(owned), naive::read(line), "{:?} {:?}", line, read);
    }

    #[test]
    fn what_is_written_with_escapes_is_read_back(
        names in proptest::collection::vec("[a-z,= \"\u{e4}]{1,6}", 2..7),
        text in "[a-z\"\\\\ \n,=\u{e4}]{0,12}",
        time in proptest::option::of(any::<i64>()),
    ) {
        let mut body = escaped(&names[0], ", ");
        for name in &names[1..] {
            body += &format!(",{}x={}", escaped(name, ",= "), escaped(name, ",= "));
        }
        body += &format!("  {}=\"{}\",n=5i", escaped(&names[1], ",= "), escaped(&text, "\"\\"));
        if let Some(time) = time {
            body += &format!(" {time}");
        }
        prop_assume!(!names[0].starts_with(' '));
        let line = one(&body).unwrap();
        let tag = |name: &String| (format!("{name}x"), name.clone());
        let wanted: Naive = (
            names[0].clone(),
            names[1..].iter().map(tag).collect(),
            vec![(names[1].clone(), LineValue::Text(text.into())), ("n".to_owned(), LineValue::I64(5))],
            time,
        );
        prop_assert_eq!(owned(&line), wanted);
    }

    #[test]
    fn any_bytes_are_walked_once(body in proptest::collection::vec(any::<u8>(), 0..300)) {
        let (mut lines, mut end) = (Lines::new(&body), 0);
        while let Some(line) = lines.next_line() {
            let (at, length) = match line {
                Ok(line) => (line.at, line.text.len()),
                Err(bad) => (bad.at, bad.bytes.len()),
            };
            prop_assert!(at >= end && at + length <= body.len());
            end = at + length;
        }
    }

    /// Every physical line of plain lines is read, wherever bad ones are.
    #[test]
    fn good_lines_are_read_among_bad_ones(bad in proptest::collection::vec("[m,t= \\\\f1#]{0,10}", 0..6)) {
        let mut body = String::new();
        for (number, bad) in bad.iter().enumerate() {
            body += &format!("good,n={number} f=1 {number}\n{bad}\n");
        }
        let mut found = 0;
        for line in lines(&body).flatten() {
            found += usize::from(line.measurement == "good");
        }
        prop_assert_eq!(found, bad.len());
    }
}
