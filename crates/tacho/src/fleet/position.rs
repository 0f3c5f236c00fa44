//! A position on the globe, with distances and headings.

/// Mean radius of the earth.
const EARTH_RADIUS_M: f64 = 6_371_008.8;

/// Degrees, north and east positive.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Position {
    pub latitude: f64,
    pub longitude: f64,
}

impl Position {
    /// The position after a distance along a great circle; `heading` in degrees from north over east.
    pub(super) fn ahead(self, heading: f64, distance_m: f64) -> Self {
        let angle = distance_m / EARTH_RADIUS_M;
        let (latitude, heading) = (self.latitude.to_radians(), heading.to_radians());
        let there = (latitude.sin() * angle.cos() + latitude.cos() * angle.sin() * heading.cos()).asin();
        let east =
            (heading.sin() * angle.sin() * latitude.cos()).atan2(angle.cos() - latitude.sin() * there.sin());
        let longitude = self.longitude + east.to_degrees();
        Self { latitude: there.to_degrees(), longitude: (longitude + 540.0).rem_euclid(360.0) - 180.0 }
    }

    /// Metres to another position (haversine).
    pub(super) fn distance_m(self, other: Self) -> f64 {
        let half = |a: f64, b: f64| ((a - b).to_radians() / 2.0).sin().powi(2);
        let (a, b) = (self.latitude.to_radians().cos(), other.latitude.to_radians().cos());
        let h = half(self.latitude, other.latitude) + a * b * half(self.longitude, other.longitude);
        2.0 * EARTH_RADIUS_M * h.sqrt().min(1.0).asin()
    }

    /// The heading at the beginning of the shortest way to another position, in degrees from 0 to 360.
    pub(super) fn heading_to(self, other: Self) -> f64 {
        let (a, b) = (self.latitude.to_radians(), other.latitude.to_radians());
        let east = (other.longitude - self.longitude).to_radians();
        let y = east.sin() * b.cos();
        let x = a.cos() * b.sin() - a.sin() * b.cos() * east.cos();
        y.atan2(x).to_degrees().rem_euclid(360.0)
    }
}

/// The turn from one heading to another, in degrees from -180 to 180; positive is to the right.
pub(super) fn turn_between(from: f64, to: f64) -> f64 {
    (to - from + 540.0).rem_euclid(360.0) - 180.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_ahead_has_its_length_and_direction() {
        let berlin = Position { latitude: 52.52, longitude: 13.405 };
        for heading in [0.0, 37.0, 90.0, 180.0, 271.5] {
            let there = berlin.ahead(heading, 1_500.0);
            assert!((berlin.distance_m(there) - 1_500.0).abs() < 1e-3);
            assert!(turn_between(berlin.heading_to(there), heading).abs() < 1e-6);
        }
    }

    #[test]
    fn longitudes_wrap_at_the_date_line() {
        let there = Position { latitude: 0.0, longitude: 179.9999 }.ahead(90.0, 100.0);
        assert!(there.longitude < -179.99, "{there:?}");
    }

    #[test]
    fn turns_take_the_short_way() {
        assert_eq!(turn_between(350.0, 10.0), 20.0);
        assert_eq!(turn_between(10.0, 350.0), -20.0);
    }
}
