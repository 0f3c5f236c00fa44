//! Reads the sources of settings, in their order of precedence.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use toml::de::{DeTable, DeValue};
use toml::{Table, Value};

use super::derive::{ExplicitSettings, MemoryLimits};
use super::error::{self, ConfigError};
use super::memory::{Memory, fitting_threads};
use super::resolve::Config;
use super::{RawConfig, resolve};

/// The default configuration file in the data directory.
const FILE_NAME: &str = "tacho.toml";
/// The prefix of the variables.
const PREFIX: &str = "TACHO_";
/// Variables with this prefix that are not settings: the log filter, the password of commands, and two of the tests.
const NO_SETTINGS: [&str; 4] = ["TACHO_LOG", "TACHO_PASSWORD", "TACHO_BIN", "TACHO_OBD_DIR"];

/// The sources of the configuration.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    /// `--config`.
    pub config: Option<PathBuf>,
    /// `--data`.
    pub data: Option<PathBuf>,
    /// All environment variables.
    pub environment: Vec<(OsString, OsString)>,
    /// The available memory; `None` looks for it.
    pub memory: Option<Memory>,
}

impl Sources {
    /// Reads all sources and resolves them.
    pub(crate) fn load(&self) -> Result<Config, ConfigError> {
        let (raw, limits) = self.settings()?;
        resolve::resolve(raw, limits)
    }

    /// Reads all sources without checking values against each other. Some settings that no source has are derived from the
    /// memory, if that is small.
    pub(crate) fn settings(&self) -> Result<(RawConfig, MemoryLimits), ConfigError> {
        let variables = self.variables()?;
        let mut table = match self.file(&variables)? {
            Some(path) => read_file(&path)?,
            None => Table::new(),
        };
        for Variable { section, key, value } in &variables {
            put(&mut table, section.clone(), key, value.clone());
        }
        let explicit = ExplicitSettings::of(&table);
        let mut raw: RawConfig = table.try_into().expect("BUG: every value was checked where it was read");
        if let Some(data) = &self.data {
            raw.data.clone_from(data);
        } else if self.config.is_none() {
            // The file in a data directory cannot name another directory.
            raw.data = self.searched(&variables);
        }
        let threads = fitting_threads().filter(|_| raw.query.threads == 0);
        raw.query.threads = threads.unwrap_or(raw.query.threads);
        let bounds = self.memory.clone().map_or_else(|| Memory::all(&raw.query), |memory| vec![memory]);
        let mut limits = MemoryLimits::derive(bounds.first().cloned(), &explicit, &mut raw);
        limits.derived.extend(threads.map(|threads| ("query.threads", threads)));
        limits.bounds = bounds;
        Ok((raw, limits))
    }

    /// The configuration file, if it exists. A file of `--config` must exist.
    fn file(&self, variables: &[Variable]) -> Result<Option<PathBuf>, ConfigError> {
        if let Some(path) = &self.config {
            return Ok(Some(path.clone()));
        }
        let path = self.searched(variables).join(FILE_NAME);
        Ok(path.exists().then_some(path))
    }

    /// The data directory that results without a file.
    fn searched(&self, variables: &[Variable]) -> PathBuf {
        let from_variable =
            variables.iter().find(|variable| variable.section.is_none() && variable.key == "data");
        match (&self.data, from_variable.and_then(|variable| variable.value.as_str())) {
            (Some(data), _) => data.clone(),
            (None, Some(data)) => data.into(),
            (None, None) => RawConfig::default().data,
        }
    }

    /// The variables of settings, with their values in the types of the settings.
    fn variables(&self) -> Result<Vec<Variable>, ConfigError> {
        let known = known_settings();
        self.environment
            .iter()
            .filter_map(|(name, value)| Some((name.to_str()?, value)))
            .filter(|(name, _)| name.starts_with(PREFIX) && !NO_SETTINGS.contains(name))
            .map(|(name, value)| Variable::read(name, &value.to_string_lossy(), &known))
            .collect()
    }
}

/// A setting and its default.
struct Setting {
    section: Option<String>,
    key: String,
    default: Value,
}

impl Setting {
    fn variable_name(&self) -> String {
        let section = self.section.iter().map(|section| format!("{section}_"));
        format!("{PREFIX}{}{}", section.collect::<String>(), self.key).to_uppercase()
    }
}

/// All settings, taken from the defaults.
fn known_settings() -> Vec<Setting> {
    let table = Table::try_from(RawConfig::default()).expect("BUG: the defaults are plain TOML");
    let mut settings = Vec::new();
    for (name, value) in table {
        match value {
            Value::Table(keys) => settings.extend(keys.into_iter().map(|(key, default)| {
                let section = Some(name.clone());
                Setting { section, key, default }
            })),
            default => settings.push(Setting { section: None, key: name, default }),
        }
    }
    settings
}

/// A setting from the environment.
struct Variable {
    section: Option<String>,
    key: String,
    value: Value,
}

impl Variable {
    fn read(name: &str, text: &str, known: &[Setting]) -> Result<Self, ConfigError> {
        let Some(setting) = known.iter().find(|setting| setting.variable_name() == name) else {
            let names: Vec<_> = known.iter().map(Setting::variable_name).collect();
            let hint = error::hint(name, names.iter().map(String::as_str));
            return Err(ConfigError::UnknownVariable { name: name.into(), hint });
        };
        let wrong = |expected| ConfigError::Variable { name: name.into(), value: text.into(), expected };
        let value = match &setting.default {
            Value::Integer(_) => {
                let number = text.parse().ok().filter(|number| *number >= 0);
                Value::Integer(number.ok_or_else(|| wrong("a whole number"))?)
            }
            Value::Boolean(_) => Value::Boolean(text.parse().map_err(|_| wrong("true or false"))?),
            Value::Array(_) => {
                let words = text.split(',').map(str::trim).filter(|word| !word.is_empty());
                Value::Array(words.map(|word| Value::String(word.into())).collect())
            }
            _ => Value::String(text.into()),
        };
        let variable = Self { section: setting.section.clone(), key: setting.key.clone(), value };
        variable.fits().then_some(variable).ok_or_else(|| wrong("a smaller number"))
    }

    /// Whether the type of the setting can hold the value.
    fn fits(&self) -> bool {
        let mut table = Table::new();
        put(&mut table, self.section.clone(), &self.key, self.value.clone());
        table.try_into::<RawConfig>().is_ok()
    }
}

fn put(table: &mut Table, section: Option<String>, key: &str, value: Value) {
    let keys = match section {
        None => Some(table),
        Some(section) => table.entry(section).or_insert_with(|| Table::new().into()).as_table_mut(),
    };
    keys.expect("BUG: sections are tables in the defaults and in checked files").insert(key.into(), value);
}

/// Reads a file and checks keys and types. Errors name the line.
fn read_file(path: &Path) -> Result<Table, ConfigError> {
    let text =
        std::fs::read_to_string(path).map_err(|source| ConfigError::Read { path: path.into(), source })?;
    check_keys(path, &text)?;
    toml::from_str::<RawConfig>(&text).map_err(|error| ConfigError::syntax(path, &text, &error))?;
    toml::from_str(&text).map_err(|error| ConfigError::syntax(path, &text, &error))
}

fn check_keys(path: &Path, text: &str) -> Result<(), ConfigError> {
    let table = DeTable::parse(text).map_err(|error| ConfigError::syntax(path, text, &error))?;
    let known = known_settings();
    for (name, value) in table.get_ref() {
        let is_section = |setting: &Setting| setting.section.as_deref() == Some(name.get_ref());
        match value.get_ref() {
            DeValue::Table(keys) if known.iter().any(is_section) => {
                let in_section =
                    || known.iter().filter(|setting| is_section(setting)).map(|it| it.key.as_str());
                if let Some(key) = keys.keys().find(|key| !in_section().any(|known| known == key.get_ref())) {
                    let hint = error::hint(key.get_ref(), in_section());
                    let full = format!("{}.{}", name.get_ref(), key.get_ref());
                    return Err(unknown_key(path, text, full, key.span().start, hint));
                }
            }
            _ if known.iter().any(|setting| is_section(setting) || is_top_level(setting, name.get_ref())) => {
            }
            _ => {
                let hint = error::hint(name.get_ref(), top_level_names(&known).iter().map(String::as_str));
                return Err(unknown_key(path, text, name.get_ref().to_string(), name.span().start, hint));
            }
        }
    }
    Ok(())
}

fn is_top_level(setting: &Setting, name: &str) -> bool {
    setting.section.is_none() && setting.key == name
}

fn top_level_names(known: &[Setting]) -> Vec<String> {
    let mut names: Vec<_> =
        known.iter().map(|setting| setting.section.clone().unwrap_or_else(|| setting.key.clone())).collect();
    names.dedup();
    names
}

fn unknown_key(path: &Path, text: &str, key: String, offset: usize, hint: String) -> ConfigError {
    ConfigError::UnknownKey { path: path.into(), line: error::line_of(text, offset), key, hint }
}
