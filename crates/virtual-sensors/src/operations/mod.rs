//! Operations on virtual sensors, for callers with the permission.

mod follow;
mod output_follower;
mod pushing;
mod sensors;
mod sources;

pub use output_follower::OutputFollower;
