use std::collections::HashSet;

use super::driver::Activity;
use super::models::BRAKING_MAX;
use super::*;

/// Drives each vehicle of a seed for some time and shows every step to `check`.
fn drive(seed: u64, seconds: f64, dt_s: f64, mut check: impl FnMut(&Vehicle, &Vehicle)) {
    for mut vehicle in vehicles(12, seed) {
        for _ in 0..(seconds / dt_s) as usize {
            let before = vehicle.clone();
            vehicle.step(dt_s);
            check(&before, &vehicle);
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_fleet_and_another_seed_another() {
    let day = |seed| {
        let mut fleet = vehicles(5, seed);
        fleet.iter_mut().for_each(|vehicle| vehicle.step(600.0));
        fleet.iter().map(Vehicle::report).collect::<Vec<_>>()
    };
    assert_eq!(day(7), day(7));
    assert_ne!(day(7), day(8));
    let first = |count| vehicles(count, 7)[0].report();
    assert_eq!(first(1), first(50));
}

#[test]
fn speed_and_acceleration_stay_within_the_limits_of_a_vehicle() {
    for seed in 0..4 {
        drive(seed, 900.0, 0.2, |before, after| {
            assert!((0.0..=after.model.speed_max_mps).contains(&after.speed_mps));
            let acceleration = (after.speed_mps - before.speed_mps) / 0.2;
            let most = after.model.acceleration_max + 1e-9;
            assert!((-BRAKING_MAX - 1e-9..=most).contains(&acceleration), "{acceleration} m/s2");
        });
    }
}

#[test]
fn revolutions_follow_from_speed_and_gear() {
    for seed in 0..4 {
        drive(seed, 900.0, 0.2, |_, vehicle| {
            let (model, engine) = (vehicle.model, &vehicle.engine);
            if !vehicle.driver.is_ignition_on() {
                assert_eq!((engine.rpm, engine.gear), (0.0, 0));
                return;
            }
            assert_eq!(engine.gear > 0, vehicle.speed_mps > 0.0, "{engine:?} at {} m/s", vehicle.speed_mps);
            assert!(engine.rpm <= model.rpm_max, "{engine:?} at {} m/s", vehicle.speed_mps);
            let idle = model.idle_rpm - 13.0..=model.idle_rpm * 1.4 + 13.0;
            let closed = if engine.gear > 0 { model.rpm_at(vehicle.speed_mps, engine.gear) } else { 0.0 };
            let follows = (engine.rpm - closed).abs() < 1e-6;
            assert!(
                follows || (closed < engine.rpm && idle.contains(&engine.rpm)),
                "{engine:?}, wheels {closed}"
            );
        });
    }
}

#[test]
fn the_position_advances_by_the_way_driven_along_the_heading() {
    drive(3, 600.0, 0.2, |before, after| {
        let way = (before.speed_mps + after.speed_mps) / 2.0 * 0.2;
        let moved = before.position.distance_m(after.position);
        assert!((moved - way).abs() < 0.01, "{moved} m moved, {way} m driven");
        assert!((after.odometer_m - before.odometer_m - way).abs() < 1e-6);
        if moved > 0.5 {
            let off = position::turn_between(before.position.heading_to(after.position), after.heading);
            assert!(off.abs() < 0.1, "{off} degrees off the heading");
        }
    });
}

#[test]
fn fuel_is_burnt_refilled_and_never_negative() {
    let mut vehicle = vehicles(1, 5).remove(0);
    vehicle.engine.fuel_l = vehicle.model.tank_l * 0.1;
    let (mut refuelled, mut last) = (false, vehicle.engine.fuel_l);
    for _ in 0..20_000 {
        vehicle.step(1.0);
        let fuel = vehicle.engine.fuel_l;
        assert!((0.0..=vehicle.model.tank_l).contains(&fuel));
        let at_the_pump = vehicle.driver.activity == Activity::Refuelling;
        assert!(fuel <= last || at_the_pump || vehicle.speed_mps == 0.0, "fuel appeared while driving");
        refuelled |= at_the_pump;
        last = fuel;
    }
    assert!(refuelled, "a vehicle with a tenth of its tank left found no pump in five hours");
}

#[test]
fn consumption_is_that_of_a_real_vehicle() {
    let mut fleet = vehicles(40, 11);
    for vehicle in fleet.iter_mut().filter(|vehicle| vehicle.model.mass_kg < 2_000.0) {
        vehicle.engine.fuel_l = vehicle.model.tank_l;
        let start_m = vehicle.odometer_m;
        vehicle.step(3_600.0);
        let way_km = (vehicle.odometer_m - start_m) / 1_000.0;
        let per_100_km = (vehicle.model.tank_l - vehicle.engine.fuel_l) / way_km * 100.0;
        assert!(way_km > 5.0, "{way_km} km in an hour");
        assert!((3.5..16.0).contains(&per_100_km), "{per_100_km} l/100 km over {way_km} km");
    }
}

#[test]
fn engines_warm_up_to_the_thermostat_and_no_further() {
    drive(9, 1_800.0, 1.0, |_, vehicle| {
        let thermal = &vehicle.thermal;
        assert!(thermal.coolant_c < 98.0 && thermal.oil_c < 115.0, "{thermal:?}");
        assert!(thermal.coolant_c > thermal.ambient_c - 6.0, "{thermal:?}");
    });
    let mut cold = vehicles(1, 2).remove(0);
    cold.thermal.coolant_c = cold.thermal.ambient_c;
    cold.step(1_500.0);
    assert!(cold.thermal.coolant_c > 70.0, "{:?}", cold.thermal);
}

#[test]
fn a_fleet_shows_every_kind_of_event() {
    let mut seen = HashSet::new();
    let mut codes = HashSet::new();
    let mut furthest_m = 0.0_f64;
    for mut vehicle in vehicles(30, 1) {
        let start = vehicle.position;
        for _ in 0..3_600 {
            vehicle.step(1.0);
            seen.insert(std::mem::discriminant(&vehicle.driver.activity));
            codes.insert(vehicle.report().fault_codes);
            furthest_m = furthest_m.max(start.distance_m(vehicle.position));
        }
    }
    assert_eq!(seen.len(), 4, "parked, refuelling, waiting, driving");
    assert!(codes.contains(&Vec::new()) && codes.len() > 5, "{codes:?}");
    assert!((3_000.0..60_000.0).contains(&furthest_m), "{furthest_m} m from the start");
}

#[test]
fn reports_are_json_with_stable_types() {
    let report = vehicles(1, 1)[0].report();
    let json = serde_json::to_value(&report).unwrap();
    let object = json.as_object().unwrap();
    assert_eq!(object.len(), 15);
    for key in
        ["latitude", "longitude", "heading", "speed", "fuel_level", "engine_load", "throttle", "odometer"]
    {
        assert!(object[key].is_f64(), "{key}: {}", object[key]);
    }
    assert!(object["rpm"].is_i64() && object["gear"].is_u64() && object["ignition"].is_boolean());
    assert!(object["fault_codes"].is_array());
}
