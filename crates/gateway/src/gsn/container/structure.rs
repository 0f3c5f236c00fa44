//! The fields and the place of a sensor.

use super::super::sensor::Sensor;
use super::super::xml::escaped;

/// `REQUEST=113`
pub(super) fn structure(sensor: &Sensor) -> String {
    let mut text = format!("<virtual-sensor name=\"{}\">\n", escaped(sensor.name()));
    text.push_str(
        "<field name=\"time\" type=\"string\" description=\"The timestamp associated with the stream element\" unit=\"\"/>\n",
    );
    for field in sensor.fields() {
        text.push_str(&format!(
            "<field name=\"{}\" type=\"{}\" description=\"{}\" unit=\"{}\" />\n",
            escaped(&field.name),
            escaped(&field.type_name),
            escaped(&field.description),
            escaped(&field.unit)
        ));
    }
    text + "</virtual-sensor>"
}

/// `REQUEST=115`
pub(super) fn addressing(sensor: &Sensor) -> String {
    let mut text = format!("<virtual-sensor name=\"{}\">\n", escaped(sensor.name()));
    for (key, value) in sensor.addressing() {
        text.push_str(&format!("<predicate key=\"{}\">{}</predicate>\n", escaped(key), escaped(value)));
    }
    text + "</virtual-sensor>"
}
