//! A simulated fleet of vehicles.
//!
//! The model is small, and its values depend on each other as in a car. The driver wants a speed. Mass and power determine the
//! acceleration. Gear and wheels determine the revolutions of the engine. Power determines load, fuel and heat. The distance
//! moves the position along the heading on the globe. There is no map: vehicles turn anywhere, and stay within about 40 km of
//! their town.
//!
//! The model does no I/O: time is an argument, and randomness comes from the seed. [`crate::simulator`] has the sockets.

mod driver;
mod engine;
mod faults;
mod models;
mod position;
mod random;
mod thermal;
mod vehicle;

#[cfg(test)]
mod tests;

pub(crate) use vehicle::{Report, Vehicle};

use random::Random;

/// Vehicles `0..count` of a seed. The same seed gives the same fleet, and a larger fleet begins with the smaller fleet.
pub(crate) fn vehicles(count: usize, seed: u64) -> Vec<Vehicle> {
    (0..count as u64).map(|index| Vehicle::new(Random::of_vehicle(seed, index))).collect()
}
