//! The classes ClockedBridge, GPSNMEA and Chart.

use super::classes::with_class;
use super::*;
use crate::virtual_sensors::Descriptor;
use crate::virtual_sensors::plan::Wrapper;

#[test]
fn a_clocked_bridge_gives_at_its_turns_what_came_since_the_last_one() {
    let params = "<param name='rate'>1000</param><param name='table_name'>other</param>";
    let mut run = Run::new(&with_class("ClockedBridgeVirtualSensor", params, "", &[("x", "integer")]));
    run.x(100, 1).x(900, 2).tick(999);
    assert_eq!(run.take(), Vec::<String>::new());
    run.tick(1_000).tick(2_500);
    assert_eq!(run.take(), ["100: 1", "900: 2"]);
}

#[test]
fn a_clocked_bridge_without_a_stream_reads_the_table_that_it_names() {
    let xml = "<virtual-sensor name='v'><processing-class><class-name>gsn.vsensor.ClockedBridgeVirtualSensor</class-name>\
               <init-params><param name='rate'>10</param><param name='table_name'>Road</param></init-params><output-structure>\
               <field name='x' type='double'/></output-structure></processing-class><streams/></virtual-sensor>";
    let plan = plan(xml);
    let (id, source) = plan.sources().next().expect("a source");
    assert_eq!(source.wrapper, Wrapper::Local { sensor: "road".into() });
    let mut run = Run::new(xml);
    run.element_of(id, 3, 3, &[("x", Datum::Int(1))]).tick(20);
    assert_eq!(run.take(), ["3: 1.0"]);
    assert!(fault(&xml.replace("table_name", "table")).contains("needs the parameter \"table_name\""));
}

#[test]
fn a_clocked_bridge_holds_a_bounded_number_of_rows() {
    let params = "<param name='rate'>1000000</param><param name='table_name'>other</param>";
    let mut run = Run::new(&with_class("ClockedBridgeVirtualSensor", params, "", &[("x", "integer")]));
    for at in 0..1_005 {
        run.x(at, at);
    }
    assert_eq!((run.take().len(), run.sensor.counters().released_early), (5, 5));
}

#[test]
fn sentences_become_a_position() {
    let output =
        [("latitude", "double"), ("longitude", "double"), ("altitude", "double"), ("satellites", "integer")];
    let mut run = Run::new(&with_class("GPSNMEAVS", "", "", &output));
    let text = "$GPGGA,123519,4807.500,N,01130.000,W,1,08,0.9,545.4,M,46.9,M,,*5A\n$GPRMC,no*00";
    run.element(5, &[("x", Datum::Text(text.into()))]).element(6, &[]).element(7, &[("x", Datum::Int(1))]);
    assert_eq!(run.take(), ["5: 48.125 -11.5 545.4 8"]);
    let counters = run.sensor.counters();
    assert_eq!((counters.sentences_refused, counters.rows_without_position, counters.faults), (1, 1, 1));
    let xml = with_class("GPSNMEAVS", "", "", &[("lat", "double")]);
    assert!(fault(&xml).contains("the class does not give the field \"lat\"; it gives latitude, longitude"));
}

#[test]
fn a_chart_draws_the_newest_rows() {
    let params = "<param name='title'>Speed &lt;&amp;&gt;</param><param name='type'>ANY</param><param name='width'>400</param>\
                  <param name='height'>300</param><param name='vertical-axis'>km/h</param><param name='history-size'>3</param>\
                  <param name='input-stream'>S</param>";
    let xml = with_class("ChartVirtualSensor", params, "", &[("data", "binary:image/png")]);
    let mut run = Run::new(&xml);
    let empty = run.sensor.chart().expect("a chart").svg();
    roxmltree::Document::parse(&empty).expect("a document");
    for at in 1..6 {
        run.x(at * 1_000, at * at);
    }
    run.element(6_000, &[("x", Datum::Text("fast".into()))]);
    assert_eq!(run.take(), Vec::<String>::new(), "the output has only the chart");
    let chart = run.sensor.chart().expect("a chart");
    assert_eq!(chart.lines, [("x".to_owned(), vec![(4_000, 16.0), (5_000, 25.0)])]);
    let svg = chart.svg();
    let document = roxmltree::Document::parse(&svg).expect("a document");
    assert_eq!(document.root_element().attribute("width"), Some("400"));
    let texts: Vec<_> = document.descendants().filter_map(|node| node.text()).map(str::trim).collect();
    for text in ["Speed <&>", "km/h", "x", "Time (UTC)"] {
        assert!(texts.contains(&text), "{text}: {texts:?}");
    }
    assert!(document.descendants().any(|node| node.has_tag_name(("http://www.w3.org/2000/svg", "polyline"))));
    assert!(fault(&xml.replace(">S<", ">other<")).contains("input-stream is \"other\"; streams are s"));
    assert!(fault(&xml.replace(">3<", ">1001<")).contains("a whole number from 1 to 1000"));
}

#[test]
fn a_chart_of_extreme_values_is_drawn() {
    let xml = with_class("ChartVirtualSensor", "", "", &[("x", "double"), ("data", "binary")]);
    for values in [[1e15, 1e15, 1e15], [1e300, -1e300, 0.0], [1e15, 1e15 + 0.125, -1e-300], [5.0, 5.0, 5.0]] {
        let mut run = Run::new(&xml);
        for (at, value) in values.iter().enumerate() {
            run.element(at as i64, &[("x", Datum::Float(*value))]);
        }
        roxmltree::Document::parse(&run.sensor.chart().expect("a chart").svg()).expect("a document");
        assert_eq!(run.take().len(), 3, "the rows are stored, too");
    }
}

#[test]
fn descriptors_without_streams_are_noted() {
    let xml = "<virtual-sensor name='v'><processing-class><output-structure><field name='x' type='double'/></output-structure>\
               </processing-class><streams/></virtual-sensor>";
    let plan = Plan::new(&Descriptor::parse(xml).unwrap()).unwrap();
    assert!(plan.notes[0].text.contains("makes no rows"));
}
