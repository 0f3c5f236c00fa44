//! Wrappers: which are there, and what to use instead of the others.

use crate::virtual_sensors::descriptor::{Address, DataType, Field, Pair, Said, Source};
use crate::virtual_sensors::fault::{Fault, Note};
use crate::virtual_sensors::limits::FIELDS_MAX;

/// Where the elements of a source come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wrapper {
    /// Rows that devices write into a table of this server.
    Tacho {
        /// The name of the device, or a pattern in which `*` stands for any text.
        device: String,
        /// The table that they write to, if it is given.
        table: Option<String>,
        /// The profile that they have, if it is given.
        profile: Option<String>,
    },
    /// The output of another virtual sensor.
    Local {
        /// The name of the sensor.
        sensor: String,
    },
    /// Lines of a file.
    Csv {
        /// The file, as the descriptor names it.
        file: String,
    },
}

impl Wrapper {
    /// The wrapper in words.
    pub fn describe(&self) -> String {
        match self {
            Self::Tacho { device, table: Some(table), .. } => format!("device {device:?}, table {table:?}"),
            Self::Tacho { device, profile: Some(profile), .. } => {
                format!("device {device:?}, profile {profile:?}")
            }
            Self::Tacho { device, .. } => format!("device {device:?}"),
            Self::Local { sensor } => format!("virtual sensor {sensor:?}"),
            Self::Csv { file } => format!("CSV file {file:?}"),
        }
    }
}

/// A field that an address names, and whether it is text.
pub(super) type NamedField = (String, bool);

/// What the wrappers that are not here are for, and what replaces them.
const REPLACED: &[(&str, &str)] = &[
    ("mqtt", "let the device publish to the MQTT door of this server, and read it with wrapper tacho"),
    ("coap", "let the device publish over MQTT or HTTP, and read it with wrapper tacho"),
    ("http-get", "let the device post to the HTTP door of this server, and read it with wrapper tacho"),
    ("udp", "let the device publish over MQTT or HTTP, and read it with wrapper tacho"),
    ("serial", "let a program publish what the line says over MQTT, and read it with wrapper tacho"),
    ("jdbc", "copy the table with tacho import, and read it with wrapper tacho"),
    ("replay", "run the sensor over a file: tacho sensor run FILE --csv DATA"),
    ("rss", "let a program publish the entries over MQTT, and read it with wrapper tacho"),
    ("grid", "let a program publish the cells over MQTT, and read it with wrapper tacho"),
    ("imagefile", "images are not kept; publish their measures over MQTT, and read these with wrapper tacho"),
    ("memory-usage", "let a program publish it over MQTT, and read it with wrapper tacho"),
    ("free-disk-space", "let a program publish it over MQTT, and read it with wrapper tacho"),
    ("system-time", "use a slide in time, and now_millis() in the query"),
    ("gps-test", "use the simulated fleet (tacho demo), and read it with wrapper tacho"),
    ("multiformat", "use the simulated fleet (tacho demo), and read it with wrapper tacho"),
    ("zeromq", "publish over MQTT, and read it with wrapper tacho"),
    ("zeromq-push", "publish over MQTT, and read it with wrapper tacho"),
    ("zeromq-sync", "use wrapper local for a sensor of this server"),
    ("zeromq-async", "use wrapper local for a sensor of this server"),
    ("remote", "use wrapper local for a sensor of this server"),
    ("remote-api", "use wrapper local for a sensor of this server"),
    ("remote-rest", "use wrapper local for a sensor of this server"),
    ("remote-direct", "publish over MQTT, and read it with wrapper tacho"),
    ("remote-push", "publish over MQTT, and read it with wrapper tacho"),
    ("toa5", "import the file with tacho import, and read it with wrapper tacho"),
];

/// Hardware that is read by drivers in Java, and services that have ended: the beginnings of their names.
const GONE: &[&str] = &[
    "tinyos",
    "mica2",
    "wsn",
    "teds",
    "ss_",
    "stspiezometer",
    "swisspegel",
    "sensorscope",
    "tetraedre",
    "epuck",
    "usbcam",
    "usb-cam",
    "flickr",
    "twitter",
    "phone",
];

/// The first address with a wrapper that is here, and the fields of its elements if it says them.
pub(super) fn choose(
    source: &Source,
    notes: &mut Vec<Note>,
) -> Result<(Wrapper, Option<Vec<NamedField>>), Fault> {
    let mut first = None;
    for (at, address) in source.addresses.iter().enumerate() {
        match wrapper(address, notes) {
            Ok(wrapper) => {
                let passed = source.addresses[..at].iter().chain(&source.addresses[at + 1..]);
                for other in passed {
                    let text = format!("the address with wrapper {} is not used", other.wrapper.value);
                    notes.push(Note { place: other.wrapper.place, text });
                }
                return Ok((wrapper, fields(address)?));
            }
            Err(fault) => first = first.or(Some(fault)),
        }
    }
    Err(first.unwrap_or_else(|| Fault::invalid(source.alias.place, "the source has no address")))
}

fn wrapper(address: &Address, notes: &mut Vec<Note>) -> Result<Wrapper, Fault> {
    let mut predicates = Predicates { address, asked: Vec::new() };
    let wrapper = match address.wrapper.value.as_str() {
        "tacho" => {
            let device = predicates.needed("device")?;
            let (table, profile) = (predicates.optional("table"), predicates.optional("profile"));
            let said = address.predicates.iter().find(|pair| pair.key.value == "profile");
            if let Some(pair) = said.filter(|_| table.is_some() && profile.is_some()) {
                let reason = "the profile says which table its devices write to; use table or profile";
                return Err(Fault::invalid(pair.key.place, reason));
            }
            Wrapper::Tacho { device, table, profile }
        }
        "local" => {
            if let Some(pair) = address.predicates.iter().find(|pair| pair.key.value == "query") {
                let reason =
                    "write what to select into the query of the source, and the sensor into \"name\"";
                return Err(Fault::unsupported(pair.key.place, reason));
            }
            Wrapper::Local { sensor: predicates.needed("name")?.to_lowercase() }
        }
        "csv" => {
            let file = predicates.needed("file")?;
            for ignored in ["fields", "formats"] {
                predicates.optional(ignored);
            }
            for key in CSV_READING {
                if let Some(pair) = predicates.take(key) {
                    let text = format!("{key} has no effect: the file is given to tacho sensor run --csv");
                    notes.push(Note { place: pair.key.place, text });
                }
            }
            Wrapper::Csv { file }
        }
        name => return Err(refuse(&address.wrapper, name)),
    };
    predicates.finish()?;
    Ok(wrapper)
}

/// How GSN reads the file.
const CSV_READING: &[&str] = &[
    "separator",
    "check-point-directory",
    "quote",
    "skip-first-lines",
    "timezone",
    "bad-values",
    "use-counter-for-check-point",
    "sampling",
];

fn refuse(said: &Said<String>, name: &str) -> Fault {
    if let Some((_, instead)) = REPLACED.iter().find(|(known, _)| *known == name) {
        return Fault::unsupported(said.place, format!("wrapper {name} is not here; {instead}"));
    }
    if GONE.iter().any(|gone| name.starts_with(gone)) {
        let reason = format!(
            "wrapper {name} reads hardware or a service that this server does not know; publish its values over MQTT, and \
             read them with wrapper tacho"
        );
        return Fault::unsupported(said.place, reason);
    }
    Fault::invalid(said.place, format!("{name:?} is no wrapper; wrappers are tacho, local and csv"))
}

/// The fields that an address names, and whether they are text: in an output structure, or in the predicates `fields` and
/// `formats` of a CSV file.
fn fields(address: &Address) -> Result<Option<Vec<NamedField>>, Fault> {
    if !address.output.is_empty() {
        let named = |field: &Field| (field.name.value.clone(), !field.data_type.is_number());
        return Ok(Some(address.output.iter().map(named).collect()));
    }
    let predicate = |key| address.predicates.iter().find(|pair| pair.key.value == key);
    let Some(said) = predicate("fields").filter(|_| address.wrapper.value == "csv") else { return Ok(None) };
    let split = |pair: &Pair| -> Vec<String> {
        pair.value.value.split(',').map(|name| name.trim().to_lowercase()).collect()
    };
    let names = split(said);
    if names.len() > FIELDS_MAX {
        let reason = format!("fields names {} fields; at most {FIELDS_MAX} (FIELDS_MAX)", names.len());
        return Err(Fault::limit(said.value.place, reason));
    }
    let formats = match predicate("formats") {
        Some(formats) => csv_formats(formats, split(formats), names.len())?,
        None => vec!["numeric".to_owned(); names.len()],
    };
    let fields = names.into_iter().zip(formats).map(|(name, format)| (name, format == "string"));
    Ok(Some(fields.filter(|(name, _)| name != "timed").collect()))
}

fn csv_formats(said: &Pair, formats: Vec<String>, fields: usize) -> Result<Vec<String>, Fault> {
    if formats.len() != fields {
        let reason = format!("formats has {} entries for {fields} fields", formats.len());
        return Err(Fault::invalid(said.value.place, reason));
    }
    let known = |format: &&String| format.starts_with("timestamp(") || DataType::parse(format).is_some();
    match formats.iter().find(|format| !known(format)) {
        None => Ok(formats),
        Some(bad) => {
            let reason = format!("{bad:?} is no format; formats are numeric, string and timestamp(PATTERN)");
            Err(Fault::invalid(said.value.place, reason))
        }
    }
}

/// The predicates of an address, each of which somebody has to ask for.
struct Predicates<'a> {
    address: &'a Address,
    asked: Vec<&'static str>,
}

impl<'a> Predicates<'a> {
    fn take(&mut self, key: &'static str) -> Option<&'a Pair> {
        self.asked.push(key);
        self.address.predicates.iter().find(|pair| pair.key.value == key)
    }

    fn optional(&mut self, key: &'static str) -> Option<String> {
        self.take(key).map(|pair| pair.value.value.clone()).filter(|text| !text.is_empty())
    }

    fn needed(&mut self, key: &'static str) -> Result<String, Fault> {
        let wrapper = &self.address.wrapper;
        let keys: Vec<_> = self.address.predicates.iter().map(|pair| pair.key.value.as_str()).collect();
        let given = if keys.is_empty() { "none".to_owned() } else { keys.join(", ") };
        let reason = format!("wrapper {} needs the predicate {key:?}; given: {given}", wrapper.value);
        self.optional(key).ok_or_else(|| Fault::invalid(wrapper.place, reason))
    }

    fn finish(self) -> Result<(), Fault> {
        let unknown =
            self.address.predicates.iter().find(|pair| !self.asked.contains(&pair.key.value.as_str()));
        let Some(pair) = unknown else { return Ok(()) };
        let reason = format!(
            "wrapper {} has no predicate {:?}; it has {}",
            self.address.wrapper.value,
            pair.key.value,
            self.asked.join(", ")
        );
        Err(Fault::invalid(pair.key.place, reason))
    }
}
