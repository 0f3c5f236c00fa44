//! Which packages of firmware and software a device, or a profile of devices, has.

use uuid::Uuid;

/// A kind of package.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PackageKind {
    Firmware,
    Software,
}

impl PackageKind {
    /// All kinds.
    pub const ALL: [Self; 2] = [Self::Firmware, Self::Software];

    /// ThingsBoard's name (`OtaPackageType`).
    pub const fn name(self) -> &'static str {
        match self {
            Self::Firmware => "FIRMWARE",
            Self::Software => "SOFTWARE",
        }
    }

    /// The beginning of the keys of shared attributes about it.
    pub const fn prefix(self) -> &'static str {
        match self {
            Self::Firmware => "fw",
            Self::Software => "sw",
        }
    }
}

impl std::str::FromStr for PackageKind {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|kind| kind.name() == name);
        found.ok_or_else(|| format!("{name:?}; it must be FIRMWARE or SOFTWARE"))
    }
}

/// The ids of packages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PackageIds {
    pub firmware: Option<Uuid>,
    pub software: Option<Uuid>,
}

impl PackageIds {
    /// The package of a kind.
    pub fn of(self, kind: PackageKind) -> Option<Uuid> {
        match kind {
            PackageKind::Firmware => self.firmware,
            PackageKind::Software => self.software,
        }
    }

    /// These packages, and those of `other` for the kinds without one.
    pub fn or(self, other: Self) -> Self {
        Self { firmware: self.firmware.or(other.firmware), software: self.software.or(other.software) }
    }
}

/// Other packages. A kind that is `None` stays as it is, `Some(None)` removes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PackageChange {
    pub firmware: Option<Option<Uuid>>,
    pub software: Option<Option<Uuid>>,
}

impl PackageChange {
    /// The packages after the change.
    pub fn on(self, old: PackageIds) -> PackageIds {
        let (firmware, software) =
            (self.firmware.unwrap_or(old.firmware), self.software.unwrap_or(old.software));
        PackageIds { firmware, software }
    }

    /// Whether nothing is to change.
    pub fn is_empty(self) -> bool {
        self == Self::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_keeps_what_it_does_not_name() {
        let [one, two] = [1, 2].map(Uuid::from_u128);
        let both = PackageIds { firmware: Some(one), software: Some(two) };
        let without = PackageChange { firmware: Some(None), software: None };
        assert_eq!(without.on(both), PackageIds { firmware: None, software: Some(two) });
        assert!(PackageChange::default().is_empty() && PackageChange::default().on(both) == both);
        let own = PackageIds { firmware: Some(two), software: None };
        assert_eq!(own.or(both), PackageIds { firmware: Some(two), software: Some(two) });
        assert_eq!(own.of(PackageKind::Software), None);
        assert!(
            "firmware".parse::<PackageKind>().is_err() && "SOFTWARE".parse() == Ok(PackageKind::Software)
        );
    }
}
