//! The wire codecs against vectors kept as text, and against arbitrary input.

mod mqtt_arbitrary;
mod mqtt_vectors;
