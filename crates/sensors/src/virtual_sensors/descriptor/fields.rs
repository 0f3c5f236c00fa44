//! Output structures.

use crate::virtual_sensors::fault::Fault;
use crate::virtual_sensors::limits::FIELDS_MAX;

use super::data_type::DataType;
use super::form::Field;
use super::located::Located;
use super::node::{Form, Node};

/// The fields of the output structure of an element. TOML has them as `[[….field]]`, too.
pub(super) fn structure(node: &Node) -> Result<Vec<Field>, Fault> {
    let mut fields: Vec<Field> = Vec::new();
    for child in node.children("field") {
        let field = field(child)?;
        if fields.len() == FIELDS_MAX {
            let reason = format!("{} has more than {FIELDS_MAX} fields (FIELDS_MAX)", node.label());
            return Err(Fault::limit(child.place, reason));
        }
        if fields.iter().any(|other| other.name.value == field.name.value) {
            let reason = format!("{} has the field {:?} twice", node.label(), field.name.value);
            return Err(Fault::invalid(field.name.place, reason));
        }
        if matches!(field.name.value.as_str(), "timed" | "pk") {
            let reason = format!("{:?} is a column that every structure has; remove it", field.name.value);
            return Err(Fault::invalid(field.name.place, reason));
        }
        fields.push(field);
    }
    node.finish()?;
    Ok(fields)
}

fn field(node: &Node) -> Result<Field, Fault> {
    let name = node.name(node.attribute("name"), "name of a field")?;
    let said = node.attribute("type").ok_or_else(|| node.missing("type"))?;
    let data_type = DataType::parse(said.value).ok_or_else(|| bad_type(&said))?;
    let unit =
        node.attribute("unit").map(|unit| unit.value.trim().to_owned()).filter(|unit| !unit.is_empty());
    let description = match node.form {
        Form::Xml => node.text.as_str(),
        Form::Toml => node.attribute("description").map_or("", |said| said.value),
    };
    let description = description.trim().to_owned();
    node.finish()?;
    Ok(Field { name, data_type, unit, description })
}

fn bad_type(said: &Located<&str>) -> Fault {
    let place = said.place;
    if said.value.trim().eq_ignore_ascii_case("time") {
        let reason = "the type time does not exist in GSN's output either; use bigint with milliseconds";
        return Fault::unsupported(place, reason);
    }
    let reason = format!(
        "{:?} is not a type; types are tinyint, smallint, integer, bigint, double, float, varchar(N), char(N), binary, string and \
         numeric",
        said.value
    );
    Fault::invalid(place, reason)
}
