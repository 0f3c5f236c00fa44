//! The text of answers, and what parameters mean.

use super::super::read::{Row, Sample};
use super::super::sensor::tests::meadow;
use super::super::value::Value;
use super::*;
use crate::http::tools::request::Params;

fn request(query: &str) -> Result<MultiRequest, Refusal> {
    MultiRequest::read(&Params::parse(query), &[meadow()])
}

/// The answer with three rows.
fn answer(query: &str) -> String {
    let request = request(query).unwrap();
    let mut out = Vec::new();
    let mut text: Box<dyn RowText> = match &request.format {
        Format::Csv { delimiter } => Box::new(Csv::new(delimiter, request.times)),
        Format::Xml => Box::new(Xml::new(request.times)),
    };
    text.begin(&mut out);
    let selection = &request.selections[0];
    text.head(selection, &mut out);
    text.names(selection, &mut out);
    let rows = [
        (
            1_795_810_530_125_000_i64,
            [Some(Value::F64(21.5)), Some(Value::I64(3)), Some(Value::Text("a<b,\nc"))],
        ),
        (1_795_810_531_000_000, [Some(Value::F64(1e10)), Some(Value::F64(4.0)), None]),
        (1_795_810_532_000_000, [None, None, Some(Value::Text(""))]),
    ];
    for (micros, values) in &rows {
        let interval =
            selection.aggregation.map(|aggregation| aggregation.interval(micros.div_euclid(1_000)));
        text.row(&Row { micros: *micros, interval, values: &values[..selection.fields.len()] }, &mut out);
    }
    text.tail(&mut out);
    text.end(&mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn csv_has_the_lines_of_gsn() {
    let expected = "\
# vsname:meadow
# query:select temperature, readings, state, pk, timed from meadow order by timed desc (size: 5000 offset: 0)
# latitude:46.5
# longitude:7.25
# place:Wannengrat
# description:Air & soil <north>
# time,temperature,readings,state
# ,°C,,
27/11/2026 20:15:30 +0000,21.5,3,a<b, c
27/11/2026 20:15:31 +0000,1.0E10,4,null
27/11/2026 20:15:32 +0000,null,null,
";
    assert_eq!(
        answer(
            "vs[0]=meadow&field[0]=All&download_mode=inline&download_format=csv&nb=SPECIFIED&nb_value=5000"
        ),
        expected
    );
}

#[test]
fn xml_has_the_elements_of_gsn() {
    let expected = "\
<result>
\t<!-- select temperature, readings, state, pk, timed from meadow where  timed &gt; 1795735800000 and  timed &lt;= 1795737600000 order by timed desc  -->
\t<!-- latitude:46.5 -->
\t<!-- longitude:7.25 -->
\t<!-- place:Wannengrat -->
\t<!-- description:Air &amp; soil &lt;north&gt; -->
\t<data vsname=\"meadow\">
\t\t<header>
\t\t\t<field unit=\"\">time</field>
\t\t\t<field unit=\"&#176;C\">temperature</field>
\t\t\t<field unit=\"\">readings</field>
\t\t\t<field unit=\"\">state</field>
\t\t</header>
\t\t<tuple>
\t\t\t<field>2026-11-27T20:15:30.125+0000</field>
\t\t\t<field>21.5</field>
\t\t\t<field>3</field>
\t\t\t<field>a&lt;b,\nc</field>
\t\t</tuple>
";
    let query = "vs[0]=MEADOW&field[0]=All&download_format=xml&time_format=iso\
                 &from=26/11/2026+23:30:00&to=27/11/2026+00:00:00";
    let answer = answer(query);
    assert_eq!(&answer[..expected.len()], expected);
    assert!(answer.ends_with("\t\t</tuple>\n\t</data>\n</result>\n"), "{answer}");
}

#[test]
fn intervals_have_a_column_of_their_own() {
    let expected = "\
# query:select avg(temperature) as temperature, avg(pk) as pk, max(timed) as timed, floor(timed/60000) as aggregation_interval from meadow group by aggregation_interval desc 
# latitude:46.5
# longitude:7.25
# place:Wannengrat
# description:Air & soil <north>
# time\ttemperature\taggregation_interval
# \t°C\tnull
1795810530125\t21.5\t29930175
";
    let query = "vs[0]=meadow&field[0]=temperature&agg_function=avg&agg_period=1&agg_unit=60000&time_format=unix&delimiter=tab";
    let answer = answer(query);
    let begin = "# vsname:meadow\n".len();
    assert_eq!(&answer[begin..begin + expected.len()], expected);
}

#[test]
fn conditions_are_joined_as_in_gsn() {
    let query = "vs[0]=meadow&field[0]=temperature&c_vs[1]=meadow&c_field[1]=readings&c_min[1]=2&c_max[1]=%2Binf&c_join[1]=and\
                 &c_vs[0]=All&c_field[0]=All&c_min[0]=-inf&c_max[0]=20.5&c_join[0]=or";
    let request = request(query).unwrap();
    let text = query_text::query_text(&request.selections[0], true);
    assert_eq!(
        text,
        "select temperature, pk, timed from meadow where  temperature <= 20.5 or  readings > 2 order by timed desc "
    );
}

#[test]
fn defaults_are_those_of_gsn() {
    let request =
        request("vs[0]=All&field[0]=temperature&vs[1]=meadow&field[1]=State&nb=ALL&sample=true").unwrap();
    assert_eq!(request.selections.len(), 1);
    let selection = &request.selections[0];
    assert_eq!(
        selection.fields.iter().map(|field| field.name.as_str()).collect::<Vec<_>>(),
        ["temperature", "state"]
    );
    assert_eq!((selection.newest, selection.sample), (None, Some(Sample { fields: 2, percentage: None })));
    assert_eq!((request.inline, request.times), (false, TimeFormat::Container));
    let disposition = disposition(&request).unwrap();
    let name = disposition.to_str().unwrap();
    assert!(name.starts_with("attachment; filename=meadow_20") && name.ends_with(".csv"), "{name}");
}

#[test]
fn what_a_parameter_cannot_mean_is_refused() {
    let with = |more: &str| format!("vs[0]=meadow&field[0]=All&{more}");
    for (query, status, part) in [
        (String::new(), 400, "names no virtual sensor"),
        ("vs[0]=meadow".into(), 400, "has no field[0]"),
        ("vs[0]=other&field[0]=All".into(), 402, "doesn't exist"),
        ("vs[0]=meadow&field[0]=humidity".into(), 403, "has no field"),
        (with("from=yesterday"), 400, "from is"),
        (with("nb=SPECIFIED"), 400, "nb_value"),
        (with("nb=SPECIFIED&nb_value=many"), 400, "nb_value"),
        (with("agg_function=median&agg_period=1&agg_unit=1"), 400, "median"),
        (with("agg_function=max"), 400, "agg_period"),
        (with("agg_function=max&agg_period=9223372036854775807&agg_unit=2"), 400, "too long"),
        (with("download_format=pdf"), 501, "PDF"),
        (with("download_format=doc"), 400, ">doc<"),
        (with("download_mode=mail"), 400, "download_mode"),
        (with("time_format=julian"), 400, "time_format"),
        (with("delimiter=pipe"), 400, "delimiter"),
        (with("reportclass=x"), 501, "reportclass"),
        (with("sample=true&sampling_percentage=0"), 400, "sampling_percentage"),
        (with("c_vs[0]=meadow"), 400, "condition 0 is incomplete"),
        (with("c_vs[0]=other&c_field[0]=state&c_min[0]=1"), 400, "applies to no sensor"),
        (with("c_vs[0]=meadow&c_field[0]=nosuch&c_min[0]=1"), 403, "has no field"),
        (with("c_vs[0]=meadow&c_field[0]=state&c_min[0]=x"), 400, "c_min[0]"),
        (with("c_vs[0]=meadow&c_field[0]=state&c_join[0]=xor"), 400, "c_join[0]"),
    ] {
        let refused = request(&query).unwrap_err().0;
        assert_eq!(refused.status.as_u16(), status, "{query}: {}", refused.message);
        assert!(refused.message.contains(part), "{query}: {}", refused.message);
    }
}
