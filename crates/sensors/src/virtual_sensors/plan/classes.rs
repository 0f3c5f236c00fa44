//! Processing classes: which are there, and what to use instead of the others.

use chrono::DateTime;

use crate::virtual_sensors::descriptor::{Pair, Processing, Said};
use crate::virtual_sensors::fault::{Fault, Note};
use crate::virtual_sensors::limits::WINDOW_ELEMENTS_MAX;

/// What is done with the rows of the streams.
#[derive(Debug, Clone, PartialEq)]
pub enum Class {
    /// They are the output.
    Bridge {
        /// Whether a row may have a field without a value.
        allow_nulls: bool,
    },
    /// At each turn of a clock the newest row is the output, with the time of the turn.
    Scheduled {
        /// Milliseconds between turns.
        rate: i64,
        /// The first turn, in milliseconds since 1970; the next whole multiple of the rate without it.
        start: Option<i64>,
    },
    /// The output counts them.
    Counter,
    /// The first field is compared with the mean of those before it.
    MovingAverage {
        /// How many are before it.
        size: usize,
        /// The greatest difference, as a share of the value.
        threshold: f64,
    },
}

/// Classes that are not here, and what replaces them.
const REPLACED: &[(&str, &str)] = &[
    ("ClockedBridge", "it polls the table of another sensor; use Bridge with wrapper local"),
    ("StreamExporter", "the output is a table of this server; read it over SQL or PostgreSQL"),
    ("ScheduledStreamExporter", "the output is a table of this server; read it over SQL or PostgreSQL"),
    (
        "StreamRRDExporter",
        "the output is a table of this server; keep it with a retention and read it over SQL",
    ),
    ("Scriptlet", "scripts in Groovy are not run; write the computation as SQL"),
    ("ScriptletProcessor", "scripts in Groovy are not run; write the computation as SQL"),
    ("Chart", "draw the output in the dashboard"),
    ("GridRenderer", "draw the output in the dashboard"),
    ("Email", "use alarm rules and notifications"),
    ("SMS", "use alarm rules and notifications"),
    ("Voip", "use alarm rules and notifications"),
    ("MQTTExporter", "the output is a table of this server; subscribe to it over WebSocket"),
    ("HBaseStorage", "the output goes to the store of this server"),
    ("R", "programs in R are not run; write the computation as SQL"),
    ("Matlab", "programs in Matlab are not run; write the computation as SQL"),
    ("Modelling", "models in Java are not run; write the computation as SQL"),
    ("GridModel", "models in Java are not run; write the computation as SQL"),
    ("DataClean", "models of signals are not fitted; SMACleaner compares with a moving average"),
    ("WebInteractive", "commands from the web cannot be given here"),
    ("GPSNMEA", "let the device publish numbers, and read them with wrapper tacho"),
];

/// The class of a descriptor.
pub(super) fn class(processing: &Processing, notes: &mut Vec<Note>) -> Result<Class, Fault> {
    let said = &processing.class_name;
    let short = short_name(said)?;
    let mut params = Params { params: &processing.params, class: short, place: said, asked: Vec::new() };
    let class = match short {
        "Bridge" => Class::Bridge { allow_nulls: params.flag("allow-nulls", true)? },
        "StatsBridge" => {
            if let Some(pair) = params.take("logging-interval") {
                let text = "logging-interval has no effect: the sensor is counted in the metrics".to_owned();
                notes.push(Note { place: pair.key.place, text });
            }
            Class::Bridge { allow_nulls: true }
        }
        "ScheduledBridge" => {
            let rate = params.number("rate", 1, i64::from(i32::MAX))?;
            let start = params.take("start-time").map(start_time).transpose()?;
            Class::Scheduled { rate, start }
        }
        "Counter" => Class::Counter,
        "SMACleaner" => {
            let size = params.number("size", 1, WINDOW_ELEMENTS_MAX as i64)? as usize;
            Class::MovingAverage { size, threshold: params.share("error-threshold")? }
        }
        name => {
            let known = REPLACED.iter().find(|(known, _)| *known == name);
            let reason = known.map_or_else(
                || {
                    format!(
                        "{:?} is no class that is here; classes are Bridge, StatsBridge, ScheduledBridge, Counter and \
                         SMACleaner",
                        said.value
                    )
                },
                |(_, instead)| format!("class {name} is not here; {instead}"),
            );
            return Err(Fault::unsupported(said.place, reason));
        }
    };
    params.finish()?;
    Ok(class)
}

/// The name without GSN's package and the ending that all its classes have.
fn short_name(said: &Said<String>) -> Result<&str, Fault> {
    let name = said.value.as_str();
    let packages = ["ch.epfl.gsn.vsensor.", "gsn.vsensor.", "ch.epfl.gsn.networking.mqtt."];
    let name = packages.iter().find_map(|package| name.strip_prefix(package)).unwrap_or(name);
    if name.contains('.') {
        let reason = format!("{name:?} is a class in Java, which is not run; write what it computes as SQL");
        return Err(Fault::unsupported(said.place, reason));
    }
    let endings = ["VirtualSensor", "VSensor", "VS"];
    Ok(endings
        .iter()
        .find_map(|ending| name.strip_suffix(ending))
        .filter(|name| !name.is_empty())
        .unwrap_or(name))
}

fn start_time(pair: &Pair) -> Result<i64, Fault> {
    let text = &pair.value.value;
    // GSN takes a day of one digit too.
    let time = DateTime::parse_from_rfc3339(text)
        .or_else(|_| DateTime::parse_from_str(text, "%Y-%m-%dT%H:%M:%S%.f%:z"));
    time.map(|time| time.timestamp_millis()).map_err(|_| {
        let reason = format!("start-time is {text:?}; it is a time such as 2026-05-01T00:00:00Z");
        Fault::invalid(pair.value.place, reason)
    })
}

/// The parameters of a class, each of which somebody has to ask for.
struct Params<'a> {
    params: &'a [Pair],
    class: &'a str,
    place: &'a Said<String>,
    asked: Vec<&'static str>,
}

impl<'a> Params<'a> {
    fn take(&mut self, key: &'static str) -> Option<&'a Pair> {
        self.asked.push(key);
        self.params.iter().find(|pair| pair.key.value == key)
    }

    fn needed(&mut self, key: &'static str) -> Result<&'a Pair, Fault> {
        let reason = format!("class {} needs the parameter {key:?}", self.class);
        self.take(key).ok_or_else(|| Fault::invalid(self.place.place, reason))
    }

    fn flag(&mut self, key: &'static str, default: bool) -> Result<bool, Fault> {
        let Some(pair) = self.take(key) else { return Ok(default) };
        match pair.value.value.to_lowercase().as_str() {
            "true" => Ok(true),
            "false" => Ok(false),
            text => Err(Fault::invalid(pair.value.place, format!("{key} is {text:?}; it is true or false"))),
        }
    }

    fn number(&mut self, key: &'static str, least: i64, most: i64) -> Result<i64, Fault> {
        let pair = self.needed(key)?;
        let number = pair.value.value.parse().ok().filter(|number| (least..=most).contains(number));
        let reason = format!("{key} is {:?}; it is a whole number from {least} to {most}", pair.value.value);
        number.ok_or_else(|| Fault::invalid(pair.value.place, reason))
    }

    fn share(&mut self, key: &'static str) -> Result<f64, Fault> {
        let pair = self.needed(key)?;
        let number: Option<f64> = pair.value.value.parse().ok();
        let reason = format!("{key} is {:?}; it is a number from 0 on", pair.value.value);
        number
            .filter(|number| number.is_finite() && *number >= 0.0)
            .ok_or_else(|| Fault::invalid(pair.value.place, reason))
    }

    fn finish(self) -> Result<(), Fault> {
        let unknown = self.params.iter().find(|pair| !self.asked.contains(&pair.key.value.as_str()));
        let Some(pair) = unknown else { return Ok(()) };
        let known = if self.asked.is_empty() { "no parameters".to_owned() } else { self.asked.join(", ") };
        let reason = format!("class {} has no parameter {:?}; it has {known}", self.class, pair.key.value);
        Err(Fault::invalid(pair.key.place, reason))
    }
}
