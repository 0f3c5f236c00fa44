//! From the tree to the descriptor.

use crate::virtual_sensors::fault::Fault;
use crate::virtual_sensors::limits::DATABASE_CONNECTIONS_MAX;

use super::form::{Descriptor, Processing, Storage};
use super::located::Located;
use super::node::{Node, flag, integer};
use super::{fields, pairs, sources};

/// The class of a sensor that names none.
const DEFAULT_CLASS: &str = "ch.epfl.gsn.vsensor.BridgeVirtualSensor";

pub(super) fn descriptor(node: &Node) -> Result<Descriptor, Fault> {
    let name = node.name(node.attribute("name"), "name")?;
    let flag_of = |name| node.attribute(name).map(|said| flag(said, name)).transpose();
    let (protected, sensor_map) =
        (flag_of("protected")?, flag_of("publish-to-microsoft-research-sensor-map")?);
    let priority = node.attribute("priority").map(|said| integer(said, "priority", 0, 100)).transpose()?;
    let zone = node.attribute("time-zone");
    let time_zone = zone.map(|said| Located::new(said.value.trim().to_owned(), said.place));
    let lateness = node.attribute("lateness").filter(|said| !said.value.trim().is_empty());
    let lateness = lateness.map(|said| Located::new(said.value.trim().to_owned(), said.place));
    let description = node.word("description")?.map_or("", |said| said.value.trim()).to_owned();
    let pool_size = match node.child("life-cycle")? {
        Some(child) => {
            let size = child.attribute("pool-size").map(|said| integer(said, "pool-size", 0, i64::MAX));
            let size = size.transpose()?;
            child.finish()?;
            size
        }
        None => None,
    };
    let addressing = match node.child("addressing")? {
        Some(child) => pairs::read(child, "predicate", "key")?,
        None => Vec::new(),
    };
    let storage = node.child("storage")?.map(storage).transpose()?.unwrap_or_default();
    let class = node.child("processing-class")?.ok_or_else(|| node.missing("processing-class"))?;
    let processing = processing(class)?;
    let streams = sources::streams(node)?;
    node.finish()?;
    Ok(Descriptor {
        name,
        priority,
        protected,
        time_zone,
        sensor_map,
        lateness,
        description,
        pool_size,
        addressing,
        storage,
        processing,
        streams,
    })
}

/// Reads `<storage>`, of a sensor or of a server.
pub(crate) fn storage(node: &Node) -> Result<Storage, Fault> {
    let text = |name: &str| {
        let said = node.attribute(name)?;
        Some(Located::new(said.value.trim().to_owned(), said.place)).filter(|said| !said.value.is_empty())
    };
    let connections = |name: &'static str| {
        let said = node.attribute(name);
        said.map(|said| integer(said, name, 1, DATABASE_CONNECTIONS_MAX)).transpose()
    };
    // The last one is of a version before 1.1.
    let unused = ["identifier", "permanent-storage"];
    let unused =
        unused.into_iter().filter_map(|name| Some(Located::new(name, node.attribute(name)?.place))).collect();
    let storage = Storage {
        history_size: text("history-size"),
        driver: text("driver"),
        url: text("url"),
        user: text("user"),
        // Blanks may belong to it.
        password: node.attribute("password").map(|said| Located::new(said.value.to_owned(), said.place)),
        connections_max: connections("max-db-connections")?,
        sliding_connections_max: connections("max-sliding-db-connections")?,
        unused,
    };
    node.finish()?;
    Ok(storage)
}

fn processing(node: &Node) -> Result<Processing, Fault> {
    let class_name = match node.word("class-name")?.filter(|said| !said.value.trim().is_empty()) {
        Some(said) => Located::new(said.value.trim().to_owned(), said.place),
        None => Located::new(DEFAULT_CLASS.to_owned(), node.place),
    };
    let unique = node.word("unique-timestamps")?.map(|said| flag(said, "unique-timestamps")).transpose()?;
    let params = match node.child("init-params")? {
        Some(child) => pairs::read(child, "param", "name")?,
        None => Vec::new(),
    };
    let rate = match node.child("output-specification")? {
        Some(child) => {
            let rate = child.attribute("rate").map(|said| integer(said, "rate", 0, i64::MAX)).transpose()?;
            child.finish()?;
            rate
        }
        None => None,
    };
    let web_input = node.child("web-input")?.map(web_input).transpose()?.unwrap_or_default();
    let structure = node.child("output-structure")?.ok_or_else(|| node.missing("output-structure"))?;
    let field = structure.attribute("partition-field");
    let partition_field = field.map(|said| Located::new(said.value.trim().to_lowercase(), said.place));
    let output = fields::structure(structure)?;
    if output.is_empty() {
        return Err(structure.missing("field"));
    }
    node.finish()?;
    Ok(Processing {
        class_name,
        unique_timestamps: unique.is_none_or(|said| said.value),
        params,
        rate,
        partition_field,
        output,
        web_input,
        place: node.place,
    })
}

/// The commands; their fields are read so that a fault in them is found, and not kept, because no command can be given here.
fn web_input(node: &Node) -> Result<Vec<Located<String>>, Fault> {
    node.attribute("password");
    let mut commands = Vec::new();
    for command in node.children("command") {
        commands.push(command.name(command.attribute("name"), "name of a command")?);
        for field in command.children("field") {
            field.name(field.attribute("name"), "name of a field")?;
            // Types of commands are words of forms, such as `*textarea:`.
            for word in ["type", "unit", "defaultvalue", "description"] {
                field.attribute(word);
            }
            field.finish()?;
        }
        command.finish()?;
    }
    node.finish()?;
    Ok(commands)
}
