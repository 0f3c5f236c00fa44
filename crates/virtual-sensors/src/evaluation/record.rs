//! What the key-value store keeps of a sensor. `docs/format/virtual-sensors.md` describes the bytes.
//!
//! Invariants:
//! 1. A record is written after the rows of the output that were made of what it says are durable.
//! 2. A sensor that continues from its record evaluates the rows after [`InputPoint::us`] again, and only those. Rows of the output that
//!    it makes again have the times that they had, so they replace themselves.

use kv::{KeyValueStore, KvError, Space};
use sensors::virtual_sensors::Checkpoint;
use serde::{Deserialize, Serialize};

/// Records by the names of the sensors.
pub(super) const SENSORS: Space = Space::new("virtual_sensors");

/// What a sensor continues from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SensorRecord {
    /// The hash of the text of its file. The checkpoint of another text is not used.
    pub(super) descriptor: String,
    /// Up to which row each device was evaluated.
    pub(super) inputs: Vec<InputPoint>,
    /// The last row of the output.
    pub(super) last_row: Option<LastRow>,
    /// What it remembers besides the elements of its windows.
    pub(super) checkpoint: Checkpoint,
}

/// Up to which row a device was evaluated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct InputPoint {
    pub(super) table: String,
    pub(super) device: String,
    /// The time of the last row, in microseconds since 1970.
    pub(super) us: i64,
}

/// The time of the last row of the output, and how many rows before it have the same one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LastRow {
    pub(super) ms: i64,
    pub(super) place: i64,
}

impl SensorRecord {
    /// The record of a sensor; `None` if it has none, or one that cannot be read.
    pub(super) fn read(kv: &dyn KeyValueStore, name: &str) -> Result<Option<Self>, KvError> {
        let Some(bytes) = kv.get(SENSORS, name.as_bytes())? else { return Ok(None) };
        match serde_json::from_slice(&bytes) {
            Ok(record) => Ok(Some(record)),
            Err(error) => {
                tracing::warn!(sensor = name, %error, "the record of a virtual sensor cannot be read; it begins again");
                Ok(None)
            }
        }
    }

    /// The bytes of the record.
    pub(super) fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("BUG: numbers and text are JSON")
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use sensors::virtual_sensors::{Descriptor, Plan, Sensor};

    use super::*;

    /// The bytes of `docs/format/virtual-sensors.md`.
    #[test]
    fn the_record_of_the_documentation_is_read_and_written() {
        let page = include_str!("../../../../docs/format/virtual-sensors.md");
        let start = page.find("{\"descriptor\"").expect("an example");
        let example = page[start..].lines().next().unwrap();
        let record: SensorRecord = serde_json::from_str(example).unwrap();
        assert_eq!(String::from_utf8(record.encode()).unwrap(), example);
        assert_eq!(record.inputs[0].us, 1_764_272_400_000_000);
    }

    #[test]
    fn a_damaged_record_is_none() {
        let kv = kv::MemoryStore::new();
        let mut batch = kv::WriteBatch::new();
        batch.put(SENSORS, b"v".to_vec(), b"{}".to_vec());
        kv.commit(&batch).unwrap();
        assert_eq!(SensorRecord::read(&kv, "v").unwrap(), None);
        assert_eq!(SensorRecord::read(&kv, "w").unwrap(), None);
        let text = "<virtual-sensor name='v'><processing-class><output-structure><field name='x' type='double'/></output-structure></processing-class><streams/></virtual-sensor>";
        let plan = Plan::new(&Descriptor::parse(text).unwrap()).unwrap();
        let checkpoint = Sensor::new(Arc::new(plan), None).checkpoint();
        let record =
            SensorRecord { descriptor: String::new(), inputs: Vec::new(), last_row: None, checkpoint };
        batch.put(SENSORS, b"v".to_vec(), record.encode());
        kv.commit(&batch).unwrap();
        assert_eq!(SensorRecord::read(&kv, "v").unwrap(), Some(record));
    }
}
