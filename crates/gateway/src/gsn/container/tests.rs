//! The text of answers.

use super::super::condition::{Condition, Join};
use super::super::newest::NewestRow;
use super::super::sensor::tests::meadow;
use super::*;
use crate::http::tools::request::Params;

#[test]
fn a_listed_sensor_has_its_newest_row() {
    let newest =
        NewestRow { millis: 1_795_810_530_125, values: vec![Some("21.5".into()), None, Some("a<b".into())] };
    let mut text = String::new();
    list::push_sensor(&meadow(), Some(&newest), &mut text);
    let expected = "\
<virtual-sensor name=\"meadow\" protected=\" \" description=\"Air &amp; soil &lt;north&gt;\">
\t<field name=\"time\" type=\"string\" description=\"The timestamp associated with the stream element\" unit=\"\">27/11/2026 20:15:30 +0000</field>
\t<field name=\"temperature\" type=\"double\" description=\"of the air\" unit=\"&#176;C\">21.5</field>
\t<field name=\"readings\" type=\"integer\" unit=\"\">null</field>
\t<field name=\"state\" type=\"varchar(20)\" unit=\"\">a&lt;b</field>
\t<field name=\"latitude\" category=\"predicate\">46.5</field>
\t<field name=\"longitude\" category=\"predicate\">7.25</field>
\t<field name=\"place\" category=\"predicate\">Wannengrat</field>
</virtual-sensor>
";
    assert_eq!(text, expected);
    let mut text = String::new();
    list::push_sensor(&meadow(), None, &mut text);
    assert!(text.contains("unit=\"\"></field>\n") && !text.contains("null"), "{text}");
}

#[test]
fn structure_and_place_are_those_of_the_descriptor() {
    let expected = "\
<virtual-sensor name=\"meadow\">
<field name=\"time\" type=\"string\" description=\"The timestamp associated with the stream element\" unit=\"\"/>
<field name=\"temperature\" type=\"double\" description=\"of the air\" unit=\"&#176;C\" />
<field name=\"readings\" type=\"integer\" description=\"\" unit=\"\" />
<field name=\"state\" type=\"varchar(20)\" description=\"\" unit=\"\" />
</virtual-sensor>";
    assert_eq!(structure::structure(&meadow()), expected);
    assert!(structure::addressing(&meadow()).contains("<predicate key=\"latitude\">46.5</predicate>\n"));
}

#[test]
fn a_one_shot_query_has_fields_conditions_and_a_window() {
    let query =
        "fields=state,+Temperature&condition=temperature+%3E+20+AND+timed+%3C%3D+5+or+readings=1&window=7";
    let selection = one_shot::selection(meadow(), &Params::parse(query)).unwrap();
    assert_eq!(
        selection.fields.iter().map(|field| field.name.as_str()).collect::<Vec<_>>(),
        ["state", "temperature"]
    );
    let parsed = |text, next| Condition { next, ..Condition::parse(text).unwrap() };
    assert_eq!(
        selection.conditions,
        [parsed("temperature>20", Join::And), parsed("timed<=5", Join::Or), parsed("readings=1", Join::And)]
    );
    assert_eq!(selection.newest, Some(7));
    assert_eq!(one_shot::selection(meadow(), &Params::default()).unwrap().newest, Some(1));
    for query in
        ["condition=a", "condition=temperature>1+and", "condition=nosuch>1", "fields=nosuch", "window=x"]
    {
        assert!(one_shot::selection(meadow(), &Params::parse(query)).is_err(), "{query}");
    }
}
