//! The driver: makes trips of legs, each with a speed, a length and an end.

use super::models::{BRAKING_MAX, Model};
use super::position::{Position, turn_between};
use super::random::{Random, Wander};

const KMH: f64 = 1.0 / 3.6;
/// Comfortable braking, with which stops are planned.
const BRAKING_CALM: f64 = 1.8;
/// How quickly a driver corrects the speed.
const REACTION_S: f64 = 1.2;
/// Sideways acceleration in a corner, and in the bends of a road.
const CORNER_ACCELERATION: f64 = 3.0;
const BEND_ACCELERATION: f64 = 0.25;
/// Sharpest turn of a vehicle, in degrees per second.
const TURN_RATE_MAX: f64 = 35.0;
/// Beyond this distance from home each corner leads back.
const HOME_RADIUS_M: f64 = 20_000.0;
/// A stop counts as reached within this distance.
const STOP_M: f64 = 0.3;
/// Below this speed the vehicle stands.
const STANDING_MPS: f64 = 0.05;

/// The activity of the driver.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Activity {
    /// Engine off.
    Parked { left_s: f64 },
    /// Engine off, at the pump. The vehicle ends it.
    Refuelling,
    /// Engine on at a light.
    Waiting { left_s: f64 },
    /// On a leg.
    Driving,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum LegEnd {
    /// A red light.
    Stop,
    /// A corner with its angle in degrees and the speed in m/s.
    Corner { degrees: f64, speed_mps: f64 },
    /// The road continues with another speed.
    GoOn,
}

#[derive(Debug, Clone, Copy)]
struct Leg {
    cruise_mps: f64,
    left_m: f64,
    end: LegEnd,
}

struct Road {
    speeds_kmh: (f64, f64),
    leg_m: (f64, f64),
    stop: f64,
    corner: f64,
}

const TOWN: Road = Road { speeds_kmh: (28.0, 52.0), leg_m: (90.0, 500.0), stop: 0.4, corner: 0.35 };
const COUNTRY: Road = Road { speeds_kmh: (65.0, 100.0), leg_m: (500.0, 3_000.0), stop: 0.1, corner: 0.3 };
const MOTORWAY: Road = Road { speeds_kmh: (100.0, 132.0), leg_m: (1_500.0, 5_000.0), stop: 0.0, corner: 0.1 };

/// A driver in the middle of a day.
#[derive(Debug, Clone)]
pub(super) struct Driver {
    pub activity: Activity,
    home: Position,
    leg: Leg,
    legs_left: u32,
    /// Degrees still to turn in the corner at hand, and the speed for it.
    corner: Option<(f64, f64)>,
    mood: Wander,
    bend: Wander,
}

/// The control of the driver in one step.
#[derive(Debug, Clone, Copy)]
pub(super) struct Control {
    /// The wanted acceleration, which the engine may limit.
    pub acceleration: f64,
    /// Degrees per second, positive to the right.
    pub turn_rate: f64,
}

impl Driver {
    pub(super) fn new(home: Position, random: &mut Random) -> Self {
        let standing = Leg { cruise_mps: 0.0, left_m: 0.0, end: LegEnd::Stop };
        let left_s = random.between(0.0, 60.0);
        let activity =
            if random.chance(0.1) { Activity::Parked { left_s } } else { Activity::Waiting { left_s: 0.0 } };
        let (mood, bend) = (Wander::default(), Wander::default());
        Self { activity, home, leg: standing, legs_left: trip_legs(random), corner: None, mood, bend }
    }

    /// Whether the engine runs.
    pub(super) fn is_ignition_on(&self) -> bool {
        matches!(self.activity, Activity::Waiting { .. } | Activity::Driving)
    }

    /// The control for the next step. Activities other than refuelling end by themselves.
    pub(super) fn control(&mut self, situation: &Situation<'_>, random: &mut Random, dt_s: f64) -> Control {
        match &mut self.activity {
            Activity::Parked { left_s } | Activity::Waiting { left_s } => {
                *left_s -= dt_s;
                if *left_s <= 0.0 {
                    self.set_off(situation, random);
                }
                Control { acceleration: 0.0, turn_rate: 0.0 }
            }
            Activity::Refuelling => Control { acceleration: 0.0, turn_rate: 0.0 },
            Activity::Driving => self.drive(situation, random, dt_s),
        }
    }

    /// The tank is full.
    pub(super) fn refuelled(&mut self, random: &mut Random) {
        self.activity = Activity::Parked { left_s: random.between(20.0, 60.0) };
    }

    /// Takes the distance of the last step, and ends the leg if its end is reached.
    pub(super) fn moved(&mut self, distance_m: f64, situation: &Situation<'_>, random: &mut Random) {
        if self.activity != Activity::Driving {
            return;
        }
        self.leg.left_m -= distance_m;
        let at_the_end = self.leg.left_m <= STOP_M;
        match self.leg.end {
            LegEnd::Stop if at_the_end && situation.speed_mps <= 0.0 => self.halt(situation, random),
            LegEnd::Corner { degrees, speed_mps } if at_the_end => {
                self.corner = Some((degrees, speed_mps));
                self.next_leg(situation, random);
            }
            LegEnd::GoOn if at_the_end => self.next_leg(situation, random),
            _ => {}
        }
    }

    fn set_off(&mut self, situation: &Situation<'_>, random: &mut Random) {
        if self.legs_left == 0 {
            self.legs_left = trip_legs(random);
        }
        self.activity = Activity::Driving;
        self.next_leg(situation, random);
    }

    /// Stands at the end of a leg: at a light, at the pump, or at the end of the trip.
    fn halt(&mut self, situation: &Situation<'_>, random: &mut Random) {
        self.activity = if situation.needs_fuel {
            Activity::Refuelling
        } else if self.legs_left == 0 {
            Activity::Parked { left_s: random.between(30.0, 240.0) }
        } else {
            Activity::Waiting { left_s: random.between(4.0, 45.0) }
        };
    }

    fn next_leg(&mut self, situation: &Situation<'_>, random: &mut Random) {
        self.legs_left = self.legs_left.saturating_sub(1);
        let away_m = situation.position.distance_m(self.home);
        let road = match random.between(0.0, 1.0) {
            pick if away_m > HOME_RADIUS_M || pick < 0.5 => &TOWN,
            pick if pick < 0.85 => &COUNTRY,
            _ => &MOTORWAY,
        };
        let cruise_mps = random.between(road.speeds_kmh.0, road.speeds_kmh.1) * KMH;
        let end = match random.between(0.0, 1.0) {
            _ if self.legs_left == 0 || situation.needs_fuel => LegEnd::Stop,
            pick if pick < road.stop => LegEnd::Stop,
            pick if pick < road.stop + road.corner || away_m > HOME_RADIUS_M => LegEnd::Corner {
                degrees: self.corner_degrees(situation, away_m, random),
                speed_mps: random.between(4.5, 8.0),
            },
            _ => LegEnd::GoOn,
        };
        self.leg = Leg {
            cruise_mps: cruise_mps.min(0.95 * situation.model.speed_max_mps),
            left_m: random.between(road.leg_m.0, road.leg_m.1),
            end,
        };
    }

    fn corner_degrees(&self, situation: &Situation<'_>, away_m: f64, random: &mut Random) -> f64 {
        if away_m > HOME_RADIUS_M {
            let home = turn_between(situation.heading, situation.position.heading_to(self.home));
            return home.clamp(-110.0, 110.0);
        }
        random.sign() * random.between(60.0, 110.0)
    }

    fn drive(&mut self, situation: &Situation<'_>, random: &mut Random, dt_s: f64) -> Control {
        let speed = situation.speed_mps;
        let turn_rate = self.turn_rate(speed, random, dt_s);
        let mood = 1.0 + self.mood.step(random, dt_s, 60.0, 0.02).clamp(-0.1, 0.05);
        let mut wanted = self.leg.cruise_mps * mood;
        if let Some((_, corner_mps)) = self.corner {
            wanted = wanted.min(corner_mps);
        }
        let end_mps = match self.leg.end {
            LegEnd::Stop => 0.0,
            LegEnd::Corner { speed_mps, .. } => speed_mps,
            LegEnd::GoOn => f64::INFINITY,
        };
        let left_m = (self.leg.left_m - STOP_M / 2.0).max(0.0);
        let braking =
            (speed > end_mps).then(|| (speed * speed - end_mps * end_mps) / (2.0 * left_m.max(0.01)));
        let acceleration = match braking {
            Some(braking) if braking >= BRAKING_CALM => -braking,
            _ => (wanted - speed) / REACTION_S,
        };
        Control {
            acceleration: acceleration.clamp(-BRAKING_MAX, situation.model.acceleration_max),
            turn_rate,
        }
    }

    /// Corners are taken as sharp as the speed allows; roads bend a little all the time.
    fn turn_rate(&mut self, speed_mps: f64, random: &mut Random, dt_s: f64) -> f64 {
        let sharpest =
            |acceleration: f64| (acceleration / speed_mps.max(1.0)).to_degrees().min(TURN_RATE_MAX);
        if speed_mps < STANDING_MPS {
            return 0.0;
        }
        let Some((left, corner_mps)) = self.corner else {
            let bend = self.bend.step(random, dt_s, 6.0, 0.5).clamp(-1.0, 1.0);
            return bend * sharpest(BEND_ACCELERATION);
        };
        let rate = sharpest(CORNER_ACCELERATION).min(left.abs() / dt_s) * left.signum();
        let left = left - rate * dt_s;
        self.corner = (left.abs() > 0.5).then_some((left, corner_mps));
        rate
    }
}

/// The situation that the driver sees.
#[derive(Debug, Clone, Copy)]
pub(super) struct Situation<'a> {
    pub model: &'a Model,
    pub speed_mps: f64,
    pub heading: f64,
    pub position: Position,
    pub needs_fuel: bool,
}

fn trip_legs(random: &mut Random) -> u32 {
    random.between(8.0, 60.0) as u32
}
