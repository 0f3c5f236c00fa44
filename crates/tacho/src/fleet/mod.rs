//!
//! The model is small on purpose and still coupled the way a car is: a driver asks for a speed, mass and power decide
//! how fast it comes, gear and wheel turn give the engine's revolutions, power gives load, fuel and heat, and the way
//! driven moves the position along the heading on the globe. What it is not: a map. Vehicles turn where they like and
//! stay within some 40 km of their town.
//!
//! All of it is pure: time comes in as a step, randomness from the seed. The sockets are [`crate::simulator`]'s.

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

/// Vehicles `0..count` of a seed. The same seed gives the same fleet, and a larger fleet begins with the smaller one.
pub(crate) fn vehicles(count: usize, seed: u64) -> Vec<Vehicle> {
    (0..count as u64).map(|index| Vehicle::new(Random::of_vehicle(seed, index))).collect()
}
