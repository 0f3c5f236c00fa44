//! Followers of the output of sensors: they copy its rows to a target, such as a database, and lose none.
//!
//! A follower reads the rows of the table of the output after its cursor, in batches, and moves the cursor when the target has taken a
//! batch. A row whose time is not after the cursor is remembered as a time range to read again. So a row reaches the target at least
//! once, whatever crashes; the target must recognise a row that comes again by its time.
//!
//! Invariants:
//! 1. A follower gives a row only after it is durable.
//! 2. A cursor is stored after the target has taken the rows up to it.
//! 3. The ranges to read again are stored in the batch of the checkpoint of the sensor. A crash before it makes the sensor evaluate the
//!    rows again, and then the ranges are made again.
//! 4. The engine begins the followers of a sensor before it appends rows of the sensor.

mod all_followers;
mod cursor;
mod output;

pub(crate) use all_followers::{Followers, key};
pub(crate) use cursor::{Cursor, FOLLOWERS};
pub use output::{Begin, FollowRequest, OutputRow, OutputRows, SensorOutput, SensorOutputs};
