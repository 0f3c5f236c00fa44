//! A connection to Redis or a compatible server.

mod address;
mod control;
mod error;
mod login;

pub use address::RedisAddress;
pub use control::RedisClient;
pub use error::{RedisError, text_of};
pub use login::Login;
