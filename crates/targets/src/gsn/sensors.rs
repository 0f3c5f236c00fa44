//! The list of sensors of `/gsn`.

use clients::http::HttpClient;
use load::{Error, Result};

/// A sensor of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sensor {
    pub(super) name: String,
    /// The names of its fields with a type, the time among them, as GSN's tool counts them.
    pub(super) fields: Vec<String>,
}

/// Reads the list of a server.
pub(super) fn list(http: &HttpClient, more: &str) -> Result<Vec<Sensor>> {
    let path = format!("/gsn?REQUEST=0{more}");
    let answer = http.get(&path).and_then(clients::http::HttpAnswer::success);
    let answer = answer.map_err(|error| Error::Answer(error.to_string()))?;
    parse(&answer.text()).ok_or_else(|| {
        Error::Answer(format!(
            "{}: the answer is not a list of virtual sensors, but {}",
            answer.url,
            answer.kind()
        ))
    })
}

/// The sensors of a document; `None` if it is not a list.
fn parse(text: &str) -> Option<Vec<Sensor>> {
    let mut sensors: Vec<Sensor> = Vec::new();
    let mut is_list = false;
    for tag in text.split('<').skip(1) {
        let tag = tag.split('>').next().unwrap_or_default();
        let (element, attributes) = tag.split_once(char::is_whitespace).unwrap_or((tag, ""));
        match element.trim_end_matches('/') {
            "gsn" => is_list = true,
            "virtual-sensor" => {
                sensors.push(Sensor { name: attribute(attributes, "name")?, fields: Vec::new() });
            }
            "field" => {
                if let (Some(name), Some(_), Some(sensor)) =
                    (attribute(attributes, "name"), attribute(attributes, "type"), sensors.last_mut())
                {
                    sensor.fields.push(name);
                }
            }
            _ => {}
        }
    }
    is_list.then_some(sensors)
}

/// The value of an attribute.
fn attribute(attributes: &str, name: &str) -> Option<String> {
    let mut rest = attributes;
    loop {
        let (key, after) = rest.split_once('=')?;
        let after = after.trim_start();
        let quote = after.chars().next().filter(|quote| matches!(quote, '"' | '\''))?;
        let (value, behind) = after[1..].split_once(quote)?;
        if key.trim() == name {
            return Some(unescaped(value));
        }
        rest = behind;
    }
}

/// A text without the entities of XML.
fn unescaped(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('&') {
        out.push_str(before);
        let entity = after.split_once(';').and_then(|(name, behind)| Some((letter(name)?, behind)));
        match entity {
            Some((letter, behind)) => {
                out.push(letter);
                rest = behind;
            }
            None => {
                out.push('&');
                rest = after;
            }
        }
    }
    out + rest
}

fn letter(entity: &str) -> Option<char> {
    match entity {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        number => char::from_u32(number.strip_prefix('#')?.parse().ok()?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_has_names_and_the_fields_with_types() {
        let text = "<?xml version=\"1.0\"?>\n<gsn name=\"g\" author=\"a > b\">\n\
            <virtual-sensor name=\"street\" protected=\" \" description=\"a &lt;b&gt;\">\n\
            \t<field name=\"time\" type=\"string\" unit=\"\">27/11/2026</field>\n\
            \t<field name=\"temperature\" type=\"double\" unit=\"&#176;C\">2</field>\n\
            \t<field name=\"latitude\" category=\"predicate\">46</field>\n</virtual-sensor>\n\
            <virtual-sensor name='a&amp;b'/></gsn>";
        let sensor = |name: &str, fields: &[&str]| Sensor {
            name: name.to_owned(),
            fields: fields.iter().map(|field| (*field).to_owned()).collect(),
        };
        assert_eq!(parse(text).unwrap(), [sensor("street", &["time", "temperature"]), sensor("a&b", &[])]);
        assert_eq!(parse("<gsn></gsn>"), Some(Vec::new()));
        assert_eq!(parse("<html><body>no</body></html>"), None);
    }

    #[test]
    fn entities_are_letters() {
        assert_eq!(unescaped("a&amp;b &#176;C &nosuch; &"), "a&b °C &nosuch; &");
    }
}
