//! SQL of descriptors.

use super::*;

/// The value of an expression for one element with x, y and a text.
fn value(expression: &str, x: Datum, y: Datum) -> Result<String, String> {
    let query = format!("select {expression} as z from wrapper");
    let xml =
        one_source("storage-size='1'", &query, "select cast(z as varchar) as z from a", &[("z", "string")]);
    let mut run = Run::new(&xml);
    run.element(1_000_000, &[("x", x), ("y", y), ("t", Datum::Text("Über %1".into()))]);
    match run.rows.pop() {
        Some(row) if row.values[0].is_null() => Ok("null".into()),
        Some(row) => Ok(row.values[0].to_string()),
        None => Err(run.sensor.counters().last_fault.expect("a fault")),
    }
}

#[track_caller]
fn check(expected: &[(&str, &str)]) {
    for (expression, wanted) in expected {
        let given = value(expression, Datum::Int(7), Datum::Float(-2.5));
        assert_eq!(given.as_deref(), Ok(*wanted), "{expression}");
    }
}

#[test]
fn numbers_are_computed() {
    check(&[
        ("x + 1", "8"),
        ("x + y", "4.5"),
        ("x / 2", "3"),
        ("-x / 2", "-3"),
        ("x / 2.0", "3.5"),
        ("x % 4", "3"),
        ("mod(-x, 4)", "-3"),
        ("x / 0", "null"),
        ("y / 0", "null"),
        ("2 + 3 * 4", "14"),
        ("(2 + 3) * 4", "20"),
        ("+x", "7"),
        ("- - x", "7"),
        ("'3' + 4", "7"),
        ("1e3", "1000.0"),
        ("missing + 1", "null"),
    ]);
}

#[test]
fn conditions_have_three_values() {
    check(&[
        ("x > 6", "true"),
        ("x <> 7", "false"),
        ("missing = missing", "null"),
        ("missing <=> missing", "true"),
        ("missing is null", "true"),
        ("not (missing is null)", "false"),
        ("missing = 1 and x = 0", "false"),
        ("missing = 1 or x = 7", "true"),
        ("missing = 1 or x = 0", "null"),
        ("not missing", "null"),
        ("x between 7 and 8", "true"),
        ("x not between 7 and 8", "false"),
        ("x in (1, 7)", "true"),
        ("x in (1, null)", "null"),
        ("x not in (1, 2)", "true"),
        ("7 = 7.0", "true"),
        ("'b' > 'a'", "true"),
        ("(x = 7) is true", "true"),
        ("missing is not true", "true"),
        ("9007199254740993 > 9007199254740992.0", "true"),
        ("case when x > 5 then 'warm' else 'cold' end", "warm"),
        ("case x when 1 then 'one' end", "null"),
        ("if(x > 5, 1, 2)", "1"),
    ]);
}

#[test]
fn functions_are_those_of_h2_and_mysql() {
    check(&[
        ("abs(y)", "2.5"),
        ("ceil(y)", "-2.0"),
        ("ceiling(y)", "-2.0"),
        ("floor(y)", "-3.0"),
        ("round(y)", "-3.0"),
        ("round(2.346, 2)", "2.35"),
        ("round(1234, -2)", "1200.0"),
        ("truncate(-2.345, 1)", "-2.3"),
        ("sign(y)", "-1"),
        ("sqrt(16)", "4.0"),
        ("sqrt(-1)", "null"),
        ("power(2, 10)", "1024.0"),
        ("ln(1)", "0.0"),
        ("log10(1000)", "3.0"),
        ("greatest(1, x, 3)", "7"),
        ("least(1, x, y)", "-2.5"),
        ("greatest(1, missing)", "null"),
        ("coalesce(missing, x)", "7"),
        ("ifnull(missing, 'none')", "none"),
        ("nullif(x, 7)", "null"),
        ("concat(t, '!')", "Über %1!"),
        ("t || x", "Über %17"),
        ("t || missing", "null"),
        ("lower(t)", "über %1"),
        ("ucase(t)", "ÜBER %1"),
        ("length(t)", "7"),
        ("substring(t, 2, 3)", "ber"),
        ("substring(t from 2 for 3)", "ber"),
        ("substr(t, -2)", "%1"),
        ("trim('  a ')", "a"),
        ("replace(t, 'e', 'E')", "ÜbEr %1"),
        ("cast(y as integer)", "-2"),
        ("cast('12' as bigint)", "12"),
        ("cast(t as varchar(4))", "Über"),
        ("convert(x, double)", "7.0"),
        ("now_millis()", "1000000"),
        ("unix_timestamp()", "1000"),
        ("timed", "1000000"),
        ("degrees(pi())", "180.0"),
    ]);
}

#[test]
fn like_has_wildcards_and_escapes() {
    check(&[
        ("t like 'Ü%'", "true"),
        ("t like '%r%1'", "true"),
        ("t like 'Übe_ %'", "true"),
        ("t like '%\\%_'", "true"),
        ("t like 'über%'", "false"),
        ("t ilike 'über%'", "true"),
        ("t not like '%x%'", "true"),
        ("'' like '%'", "true"),
        ("'aaab' like '%a%b'", "true"),
        ("'ab' like 'ab_'", "false"),
    ]);
}

#[test]
fn what_cannot_be_computed_is_a_fault() {
    let fault =
        |expression| value(expression, Datum::Int(i64::MAX), Datum::Float(1e308)).expect_err("a fault");
    assert!(fault("x + 1").contains("too large for a whole number"));
    assert!(fault("y * 10").contains("not a finite number"));
    assert!(fault("t + 1").contains("is not a number"));
    assert!(fault("t > 1").contains("is not a number"));
    assert!(fault("not t").contains("is not a condition"));
    assert!(fault("cast(300 as tinyint)").contains("out of the range of tinyint"));
}

/// The rows of a query over a window with known rows.
fn rows(query: &str, output: &[(&str, &str)]) -> Vec<String> {
    let mut run = Run::new(&one_source("storage-size='10'", "select * from wrapper", query, output));
    for (at, (zone, x)) in
        [("b", Some(3)), ("a", Some(1)), ("b", None), ("a", Some(2)), ("c", Some(3))].into_iter().enumerate()
    {
        run.take();
        let x = x.map_or(Datum::Null, Datum::Int);
        run.element(at as i64, &[("zone", Datum::Text(zone.into())), ("x", x)]);
    }
    run.take()
}

const ZONE_N: &[(&str, &str)] = &[("zone", "string"), ("n", "double")];

#[test]
fn rows_are_grouped() {
    assert_eq!(
        rows("select zone, count(*) as n from a group by zone", ZONE_N),
        ["4: a 2.0", "4: b 2.0", "4: c 1.0"]
    );
    assert_eq!(
        rows("select zone, count(x) as n from a group by zone having count(x) > 1", ZONE_N),
        ["4: a 2.0"]
    );
    assert_eq!(
        rows(
            "select upper(zone) as zone, sum(x) as n from a group by upper(zone) order by 2 desc, 1",
            ZONE_N
        ),
        ["4: A 3.0", "4: B 3.0", "4: C 3.0"]
    );
    assert_eq!(
        rows("select lower(zone) as zone, avg(x) + 1 as n from a where x > 1 group by 1", ZONE_N),
        ["4: a 3.0", "4: b 4.0", "4: c 4.0"]
    );
    assert_eq!(
        rows("select zone as zone, max(x) as n from a group by zone limit 1 offset 1", ZONE_N),
        ["4: b 3.0"]
    );
}

#[test]
fn aggregates_leave_out_what_has_no_value() {
    let all = "select count(*) as r, count(x) as n, count(distinct x) as d, sum(distinct x) as s, min(x) as lo, max(zone) as hi, \
               first(x) as f, last(x) as l from a";
    let output = [
        ("r", "bigint"),
        ("n", "bigint"),
        ("d", "bigint"),
        ("s", "bigint"),
        ("lo", "bigint"),
        ("hi", "string"),
        ("f", "bigint"),
        ("l", "bigint"),
    ];
    assert_eq!(rows(all, &output), ["4: 5 4 3 6 1 c 3 3"]);
}

#[test]
fn spread_is_of_a_sample_unless_it_says_otherwise() {
    let query = "select stddev(x) as a, stddev_pop(x) as b, var_samp(x) as c, var_pop(x) as d from a";
    let output = [("a", "double"), ("b", "double"), ("c", "double"), ("d", "double")];
    let given = rows(query, &output);
    // 3, 1, 2, 3: mean 2.25, squared deviations 2.75.
    let expected = [(2.75_f64 / 3.0).sqrt(), (2.75_f64 / 4.0).sqrt(), 2.75 / 3.0, 2.75 / 4.0];
    let expected: Vec<_> = expected.iter().map(|value| format!("{value:?}")).collect();
    assert_eq!(given, [format!("4: {}", expected.join(" "))]);
}

#[test]
fn spread_of_large_numbers_that_differ_little_is_exact() {
    let query = "select var_pop(x) as x from a";
    let mut run =
        Run::new(&one_source("storage-size='4'", "select x from wrapper", query, &[("x", "double")]));
    for (at, x) in [1e30, -1e30, 1e9, 1e9 + 1.0, 1e9 + 2.0, 1e9 + 3.0].into_iter().enumerate() {
        run.take();
        run.element(at as i64, &[("x", Datum::Float(x))]);
    }
    assert_eq!(run.take(), ["5: 1.25"]);
}

#[test]
fn rows_are_ordered_and_cut() {
    let x = [("x", "bigint")];
    assert_eq!(rows("select x from a order by x", &x), ["4: ", "4: 1", "4: 2", "4: 3", "4: 3"]);
    assert_eq!(rows("select x from a order by x desc limit 2", &x), ["4: 3", "4: 3"]);
    assert_eq!(rows("select x from a order by x desc nulls first limit 1", &x), ["4: "]);
    assert_eq!(
        rows("select distinct x from a where x is not null order by -x", &x),
        ["4: 3", "4: 2", "4: 1"]
    );
    assert_eq!(rows("select x from a order by zone, timed desc limit 1, 2", &x), ["4: 1", "4: "]);
    // Without an order the newest come first.
    assert_eq!(rows("select x from a", &x), ["4: 3", "4: 2", "4: ", "4: 1", "4: 3"]);
}

#[test]
fn the_clock_can_be_read_in_groups() {
    let query = "select count(*) as n from a where timed > now_millis() - 2";
    assert_eq!(rows(query, &[("n", "bigint")]), ["4: 2"]);
}

#[test]
fn names_are_the_same_in_any_case_and_quotes() {
    let query = "SELECT A.\"X\" AS \"X\" FROM \"A\" WHERE `ZONE` = 'c'";
    assert_eq!(rows(query, &[("x", "bigint")]), ["4: 3"]);
}

#[test]
fn a_query_has_limits() {
    let with = |expression: &str| {
        fault(&one_source(
            "storage-size='1'",
            &format!("select {expression} as x from wrapper"),
            "select x from a",
            &[("x", "double")],
        ))
    };
    assert!(with(&"(".repeat(100)).contains("SQL_NESTING_MAX"), "{}", with(&"(".repeat(100)));
    let chain = format!("x{}", " + x".repeat(400));
    assert!(with(&chain).contains("SQL_DEPTH_MAX"), "{}", with(&chain));
    let chain = format!("x{}", " + x".repeat(3000));
    assert!(with(&chain).contains("SQL_OPERATORS_MAX"), "{}", with(&chain));
    let list = format!("x in (1{})", ",1".repeat(5000));
    assert!(with(&list).contains("SQL_TOKENS_MAX"), "{}", with(&list));
    let long = format!("'{}'", "x".repeat(40_000));
    assert!(with(&long).contains("SQL_BYTES_MAX"), "{}", with(&long));
}

#[test]
fn too_many_groups_are_a_fault_that_ends() {
    let query = "select x, count(*) as n from a group by x limit 1";
    let window = "storage-size='10001' slide='10001'";
    let mut run =
        Run::new(&one_source(window, "select x from wrapper", query, &[("x", "bigint"), ("n", "bigint")]));
    for at in 1..=10_001 {
        run.x(at, at);
    }
    assert_eq!(run.take(), Vec::<String>::new());
    let fault = run.sensor.counters().last_fault.expect("a fault");
    assert!(fault.contains("GROUPS_MAX"), "{fault}");
    for at in 10_002..=20_002 {
        run.x(at, 5);
    }
    assert_eq!(run.take(), ["20002: 5 10001"]);
}
