//! Virtual sensors as GSN's clients see them.

use std::sync::Arc;

use hub::caller::Caller;
use virtual_sensors::{DataType, SensorInfo, VirtualSensors};

use super::condition::{Condition, Operand};
use super::refusal::Refusal;
use super::value::ValueKind;

/// A virtual sensor that a caller sees.
#[derive(Debug, Clone)]
pub(super) struct Sensor(Arc<Parts>);

#[derive(Debug)]
struct Parts {
    name: String,
    description: String,
    addressing: Vec<(String, String)>,
    fields: Vec<Field>,
    table: String,
    device: String,
}

/// A field of a sensor's output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Field {
    pub(super) name: String,
    /// The type in the words of a descriptor.
    pub(super) type_name: String,
    /// How its values are written.
    pub(super) kind: ValueKind,
    /// The unit; empty without one.
    pub(super) unit: String,
    pub(super) description: String,
}

impl Sensor {
    /// The sensors that a caller sees, sorted by name.
    pub(super) fn all(sensors: &VirtualSensors, caller: &Caller) -> Result<Vec<Self>, Refusal> {
        let sensors = sensors.sensors(caller)?;
        Ok(sensors.iter().filter(|info| has_run(info)).map(|info| Self::of(info)).collect())
    }

    /// The sensor with a name, in any letter case.
    pub(super) fn named(sensors: &VirtualSensors, caller: &Caller, name: &str) -> Result<Self, Refusal> {
        let found = sensors.sensor(caller, name.trim())?;
        let found = found.filter(|info| has_run(info));
        found.map(|info| Self::of(&info)).ok_or_else(|| Refusal::no_sensor(name))
    }

    fn of(info: &SensorInfo) -> Self {
        let fields = info.fields.iter().map(|field| Field {
            name: field.name.clone(),
            type_name: field.data_type.to_string(),
            kind: kind_of(&field.data_type),
            unit: field.unit.trim().to_owned(),
            description: field.description.trim().to_owned(),
        });
        Self(Arc::new(Parts {
            name: info.name.clone(),
            description: info.description.clone(),
            addressing: info.addressing.clone(),
            fields: fields.collect(),
            table: info.table.clone(),
            device: info.device.clone(),
        }))
    }

    pub(super) fn name(&self) -> &str {
        &self.0.name
    }

    pub(super) fn description(&self) -> &str {
        &self.0.description
    }

    /// The predicates of its place and other properties.
    pub(super) fn addressing(&self) -> &[(String, String)] {
        &self.0.addressing
    }

    pub(super) fn fields(&self) -> &[Field] {
        &self.0.fields
    }

    /// The table of its output.
    pub(super) fn table(&self) -> &str {
        &self.0.table
    }

    /// The value of the tag `device` of its output.
    pub(super) fn device(&self) -> &str {
        &self.0.device
    }

    /// The field with a name, in any letter case.
    pub(super) fn field(&self, name: &str) -> Result<&Field, Refusal> {
        let found = self.fields().iter().find(|field| field.name.eq_ignore_ascii_case(name.trim()));
        found.ok_or_else(|| {
            let names: Vec<&str> = self.fields().iter().map(|field| field.name.as_str()).collect();
            Refusal::no_field(format!(
                "The virtual sensor {} has no field {name:?}. Its fields are {}",
                self.name(),
                names.join(", ")
            ))
        })
    }

    /// Refuses conditions on fields that the sensor does not have.
    pub(super) fn check_operands(&self, conditions: &[Condition]) -> Result<(), Refusal> {
        conditions.iter().try_for_each(|condition| match &condition.operand {
            Operand::Time => Ok(()),
            Operand::Field(name) => self.field(name).map(drop),
        })
    }

    /// A predicate that is a number, such as the latitude.
    pub(super) fn coordinate(&self, key: &str) -> Option<f64> {
        let found = self.addressing().iter().find(|(name, _)| name.eq_ignore_ascii_case(key));
        found.and_then(|(_, value)| value.trim().parse().ok()).filter(|number: &f64| number.is_finite())
    }
}

/// Whether the sensor has an output. One whose file has always been faulty has none, and GSN does not know such sensors either.
fn has_run(info: &SensorInfo) -> bool {
    !info.device.is_empty()
}

fn kind_of(data_type: &DataType) -> ValueKind {
    match data_type {
        DataType::TinyInt | DataType::SmallInt | DataType::Integer | DataType::BigInt => ValueKind::Integer,
        DataType::Double => ValueKind::Double,
        DataType::Float => ValueKind::Float,
        // No sensor makes values of bytes.
        DataType::Varchar(_) | DataType::Char(_) | DataType::Binary(_) => ValueKind::Text,
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A sensor with a field of each kind.
    pub(crate) fn meadow() -> Sensor {
        let field = |name: &str, type_name: &str, kind, unit: &str, description: &str| Field {
            name: name.into(),
            type_name: type_name.into(),
            kind,
            unit: unit.into(),
            description: description.into(),
        };
        Sensor(Arc::new(Parts {
            name: "meadow".into(),
            description: "Air & soil <north>".into(),
            addressing: vec![
                ("latitude".into(), "46.5".into()),
                ("longitude".into(), "7.25".into()),
                ("place".into(), "Wannengrat".into()),
            ],
            fields: vec![
                field("temperature", "double", ValueKind::Double, "°C", "of the air"),
                field("readings", "integer", ValueKind::Integer, "", ""),
                field("state", "varchar(20)", ValueKind::Text, "", ""),
            ],
            table: "meadow".into(),
            device: "meadow".into(),
        }))
    }

    #[test]
    fn fields_and_coordinates_are_found_by_name() {
        let sensor = meadow();
        assert_eq!(sensor.field("Temperature").unwrap().kind, ValueKind::Double);
        let refused = sensor.field("humidity").unwrap_err().0;
        assert_eq!(refused.status, 403);
        assert!(refused.message.contains("temperature, readings, state"), "{}", refused.message);
        assert_eq!(sensor.coordinate("LATITUDE"), Some(46.5));
        assert_eq!(sensor.coordinate("place"), None);
    }
}
