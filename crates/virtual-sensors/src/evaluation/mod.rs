//! The evaluation of the sensors. A thread follows the files, takes durable rows, gives each sensor its turn on another thread, and stores how
//! far the sensors are.

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
mod inbox;
mod lanes;
mod output;
mod pace;
mod readers;
mod record;
mod reread;
mod running;
mod sensor_output;
mod slot;
mod start;
mod turn;
mod turns;

pub(crate) use engine::Engine;
pub(crate) use reread::keys_of;
