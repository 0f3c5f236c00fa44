//! The thread that evaluates the sensors: it follows the files, takes durable rows, and stores the output and how far it is.

mod begin_followers;
mod checkpoint;
mod cursor;
mod destination;
mod durable;
mod engine;
mod engine_files;
mod evaluate;
mod fields_read;
mod history_rows;
mod output;
mod readers;
mod record;
mod reread;
mod running;
mod sensor_output;
mod start;

pub(crate) use engine::Engine;
pub(crate) use reread::keys_of;
