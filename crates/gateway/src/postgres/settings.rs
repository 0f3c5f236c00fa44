//! Settings of a session, which drivers set and show. Only `statement_timeout` has an effect. The door refuses values that would
//! must change answers, such as another time zone or encoding.

use std::collections::BTreeMap;
use std::time::Duration;

use super::error::PgError;
use super::limits::{SETTING_BYTES_MAX, SETTINGS_MAX};

/// The version of PostgreSQL that the protocol and the catalog imitate. Clients choose their queries by it.
pub(super) const SERVER_VERSION: &str = "16.6";

/// Settings with their defaults. The door reports the first ones to every client.
const DEFAULTS: [(&str, &str); 27] = [
    ("server_version", SERVER_VERSION),
    ("server_encoding", "UTF8"),
    ("client_encoding", "UTF8"),
    ("application_name", ""),
    ("datestyle", "ISO, MDY"),
    ("timezone", "UTC"),
    ("integer_datetimes", "on"),
    ("intervalstyle", "postgres"),
    ("is_superuser", "off"),
    ("session_authorization", ""),
    ("standard_conforming_strings", "on"),
    ("default_transaction_read_only", "on"),
    ("in_hot_standby", "off"),
    ("server_version_num", "160006"),
    ("bytea_output", "hex"),
    ("extra_float_digits", "1"),
    ("search_path", "public"),
    ("transaction_isolation", "repeatable read"),
    ("default_transaction_isolation", "repeatable read"),
    ("transaction_read_only", "on"),
    ("statement_timeout", "0"),
    ("lock_timeout", "0"),
    ("idle_in_transaction_session_timeout", "0"),
    ("client_min_messages", "notice"),
    ("max_identifier_length", "255"),
    ("lc_collate", "C"),
    ("lc_ctype", "C"),
];

/// Number of [`DEFAULTS`] that the door reports at the start and when they change.
const REPORTED: usize = 13;

/// The settings of one session.
#[derive(Debug, Default)]
pub(super) struct Settings {
    changed: BTreeMap<String, String>,
    user: String,
}

impl Settings {
    /// The settings of a session of `user`.
    pub(super) fn new(user: &str) -> Self {
        Self { changed: BTreeMap::new(), user: user.into() }
    }

    /// The settings to report at the start: PostgreSQL's spelling of the name, and the value.
    pub(super) fn reported(&self) -> impl Iterator<Item = (&'static str, String)> {
        DEFAULTS[..REPORTED].iter().map(|(name, _)| (spelling(name), self.get(name).unwrap_or_default()))
    }

    /// A setting's value; `None` if the setting is unknown.
    pub(super) fn get(&self, name: &str) -> Option<String> {
        if name == "session_authorization" {
            return Some(self.user.clone());
        }
        let default =
            || DEFAULTS.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        self.changed.get(name).cloned().or_else(default)
    }

    /// Changes a setting, or resets it. Returns the name and value to report to the client, if any.
    pub(super) fn set(
        &mut self,
        name: &str,
        value: Option<&str>,
    ) -> Result<Option<(&'static str, String)>, PgError> {
        match value {
            None => {
                self.changed.remove(name);
            }
            Some(value) => {
                check(name, value)?;
                if self.changed.len() >= SETTINGS_MAX && !self.changed.contains_key(name) {
                    return Err(PgError::new(
                        "54000",
                        format!("more than {SETTINGS_MAX} settings are changed"),
                    ));
                }
                self.changed.insert(name.into(), canonical(name, value));
            }
        }
        let reported = DEFAULTS[..REPORTED].iter().find(|(known, _)| *known == name);
        Ok(reported.map(|(known, _)| (spelling(known), self.get(known).unwrap_or_default())))
    }

    pub(super) fn reset(&mut self) {
        self.changed.clear();
    }

    /// The statement timeout of this session, if the client has set one.
    pub(super) fn statement_timeout(&self) -> Option<Duration> {
        self.changed.get("statement_timeout").and_then(|text| timeout(text)).filter(|limit| !limit.is_zero())
    }
}

fn check(name: &str, value: &str) -> Result<(), PgError> {
    let refused = |allowed: &str| {
        let message = format!("{name} is {allowed} here; it cannot be {value:?}");
        Err(PgError::new("22023", message))
    };
    if value.len() > SETTING_BYTES_MAX {
        return Err(PgError::new(
            "54000",
            format!("the value of {name} is longer than {SETTING_BYTES_MAX} bytes"),
        ));
    }
    match name {
        "client_encoding" if !matches!(fold(value).as_str(), "utf8" | "unicode") => refused("UTF8"),
        "timezone" if !is_utc(value) => refused("UTC"),
        "standard_conforming_strings" if !matches!(fold(value).as_str(), "on" | "true" | "1") => {
            refused("on")
        }
        "datestyle" if !value.to_ascii_uppercase().contains("ISO") => refused("ISO"),
        "bytea_output" if fold(value) != "hex" => refused("hex"),
        "intervalstyle" if fold(value) != "postgres" => refused("postgres"),
        "statement_timeout" if timeout(value).is_none() => {
            refused("a number of milliseconds, or one with its unit")
        }
        "server_version"
        | "server_version_num"
        | "server_encoding"
        | "is_superuser"
        | "integer_datetimes"
        | "in_hot_standby"
        | "session_authorization" => Err(PgError::new("55P02", format!("{name} cannot be changed"))),
        _ => Ok(()),
    }
}

fn fold(value: &str) -> String {
    value.replace(['-', '_'], "").to_ascii_lowercase()
}

fn is_utc(value: &str) -> bool {
    let names = ["utc", "gmt", "z", "zulu", "etc/utc", "etc/gmt", "universal", "0", "+00", "+00:00", "+0"];
    names.contains(&value.to_ascii_lowercase().as_str())
}

/// The value in PostgreSQL's spelling, which drivers compare.
fn canonical(name: &str, value: &str) -> String {
    match name {
        "client_encoding" => "UTF8".into(),
        "timezone" => "UTC".into(),
        _ => value.into(),
    }
}

/// Milliseconds, or a number with ms, s or min.
fn timeout(text: &str) -> Option<Duration> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..digits].parse().ok()?;
    let unit_ms = match text[digits..].trim() {
        "" | "ms" => 1,
        "s" => 1_000,
        "min" => 60_000,
        _ => return None,
    };
    Some(Duration::from_millis(number.saturating_mul(unit_ms)))
}

/// PostgreSQL's spelling of a name. Some clients know only that.
fn spelling(name: &'static str) -> &'static str {
    match name {
        "datestyle" => "DateStyle",
        "timezone" => "TimeZone",
        "intervalstyle" => "IntervalStyle",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn startup_reports_the_settings_that_clients_decode_by() {
        let mut settings = Settings::new("ann");
        settings.set("application_name", Some("psql")).unwrap();
        let told: BTreeMap<_, _> = settings.reported().collect();
        assert_eq!((told["server_version"].as_str(), told["TimeZone"].as_str()), (SERVER_VERSION, "UTC"));
        assert_eq!(
            (told["application_name"].as_str(), told["session_authorization"].as_str()),
            ("psql", "ann")
        );
    }

    #[test]
    fn harmless_settings_are_kept_and_others_refused() {
        let mut settings = Settings::default();
        assert_eq!(settings.set("search_path", Some("x")), Ok(None));
        assert_eq!(settings.get("search_path").as_deref(), Some("x"));
        assert_eq!(settings.set("application_name", Some("a")), Ok(Some(("application_name", "a".into()))));
        assert_eq!(settings.set("timezone", Some("Etc/UTC")), Ok(Some(("TimeZone", "UTC".into()))));
        let refused = settings.set("timezone", Some("Europe/Berlin")).unwrap_err();
        assert_eq!(
            (refused.code, refused.message.as_str()),
            ("22023", "timezone is UTC here; it cannot be \"Europe/Berlin\"")
        );
        assert_eq!(settings.set("server_version", Some("9")).unwrap_err().code, "55P02");
        settings.reset();
        assert_eq!(settings.get("search_path").as_deref(), Some("public"));
        assert_eq!(settings.get("no_such_setting"), None);
    }

    #[test]
    fn timeouts_have_units() {
        let mut settings = Settings::default();
        assert_eq!(settings.statement_timeout(), None);
        for (text, milliseconds) in [("1500", 1_500), ("2s", 2_000), ("1 min", 60_000), ("7ms", 7)] {
            settings.set("statement_timeout", Some(text)).unwrap();
            assert_eq!(settings.statement_timeout(), Some(Duration::from_millis(milliseconds)), "{text}");
        }
        settings.set("statement_timeout", Some("0")).unwrap();
        assert_eq!(settings.statement_timeout(), None);
        assert!(settings.set("statement_timeout", Some("soon")).is_err());
    }

    #[test]
    fn a_session_cannot_collect_settings_without_bound() {
        let mut settings = Settings::default();
        for n in 0..SETTINGS_MAX {
            settings.set(&format!("my.{n}"), Some("1")).unwrap();
        }
        assert_eq!(settings.set("my.more", Some("1")).unwrap_err().code, "54000");
        settings.set("my.0", Some("2")).unwrap();
        assert_eq!(settings.set("my.0", Some(&"x".repeat(SETTING_BYTES_MAX + 1))).unwrap_err().code, "54000");
    }
}
