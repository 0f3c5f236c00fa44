//! The file of the container, GSN's `gsn.xml`.

use std::collections::BTreeMap;

use sensors::virtual_sensors::Container;
use sensors::virtual_sensors::plan::{DatabaseOptions, StoragePlace};

/// The description of the file of the container for callers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ContainerInfo {
    /// The name of the file in the directory.
    pub file: String,
    /// The name of the server.
    pub name: Option<String>,
    pub author: Option<String>,
    /// The address of the author.
    pub email: Option<String>,
    /// The text for people.
    pub description: Option<String>,
    /// The database of sensors without a storage of their own, in words.
    pub storage: Option<String>,
    /// The parts of the file without effect, with places.
    pub notes: Vec<String>,
    /// Why the file, as it is now, is not used.
    pub problem: Option<String>,
}

/// The files that are those of a container. The first one by name counts.
#[derive(Debug, Default)]
pub(crate) struct ContainerFiles {
    files: BTreeMap<String, ContainerFile>,
}

/// A file of the container, as it was read.
#[derive(Debug, Default)]
struct ContainerFile {
    /// What the last text without a fault says.
    container: Option<Container>,
    /// The fault of the text as it is now.
    fault: Option<String>,
}

impl ContainerFiles {
    /// Whether a file is that of a container. A file that was one stays one while it cannot be read or has no sensor: an editor may be
    /// about to write it.
    pub(crate) fn takes(&self, file: &str, text: Result<&str, &String>, has_sensor: bool) -> bool {
        text.is_ok_and(|text| text.contains("<sensor-server")) || self.files.contains_key(file) && !has_sensor
    }

    /// A file has this text now. The container stays as it was if the text has a fault.
    pub(crate) fn read(&mut self, file: &str, text: Result<String, String>) {
        let known = self.files.entry(file.to_owned()).or_default();
        let read = text.and_then(|text| Container::from_xml(&text).map_err(|fault| fault.to_string()));
        match read {
            Ok(container) => *known = ContainerFile { container: Some(container), fault: None },
            Err(fault) => {
                tracing::warn!(file, "container file not used as it is now: {fault}");
                known.fault = Some(fault);
            }
        }
        if let Some(problem) = self.surplus() {
            tracing::warn!("{problem}");
        }
    }

    /// A file is gone, or is not that of a container any more.
    pub(crate) fn gone(&mut self, file: &str) {
        self.files.remove(file);
    }

    fn first(&self) -> Option<(&String, &ContainerFile)> {
        self.files.first_key_value()
    }

    /// Why files are not used.
    fn surplus(&self) -> Option<String> {
        let (first, second) = (self.files.keys().next()?, self.files.keys().nth(1)?);
        Some(format!("{second}: {first} has the container already; remove one of them"))
    }

    /// The database of a sensor that names no storage.
    pub(crate) fn storage(&self) -> Option<&DatabaseOptions> {
        match self.first()?.1.container.as_ref()?.storage.as_ref()? {
            StoragePlace::Database(database) => Some(database),
            StoragePlace::Own => None,
        }
    }

    /// Its description for callers.
    pub(crate) fn info(&self) -> Option<ContainerInfo> {
        let (file, read) = self.first()?;
        let problem = read.fault.clone().or_else(|| self.surplus());
        let info = ContainerInfo { file: file.clone(), problem, ..ContainerInfo::default() };
        let Some(container) = &read.container else { return Some(info) };
        let notes = container.notes.iter().map(|note| format!("{}: {}", note.place, note.text));
        Some(ContainerInfo {
            name: container.name.clone(),
            author: container.author.clone(),
            email: container.email.clone(),
            description: container.description.clone(),
            storage: self.storage().map(|database| database.address.to_string()),
            notes: notes.collect(),
            ..info
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_file_leaves_the_container_as_it_was() {
        let mut file = ContainerFiles::default();
        assert!(file.info().is_none());
        let text = "<sensor-server><name>Roof</name><storage url='jdbc:mysql://h/gsn' driver='com.mysql.jdbc.Driver' \
                    user='gsn' password='secret'/></sensor-server>";
        file.read("gsn.xml", Ok(text.to_owned()));
        assert_eq!(file.storage().unwrap().password, "secret");
        assert!(file.takes("gsn.xml", Ok(""), false) && !file.takes("gsn.xml", Ok(""), true));
        file.read("gsn.xml", Ok("<sensor-server>".to_owned()));
        let info = file.info().unwrap();
        assert_eq!((info.name.as_deref(), info.storage.as_deref()), (Some("Roof"), Some("MySQL h:3306/gsn")));
        assert!(info.problem.unwrap().starts_with("line 1"));
        file.read("gsn.xml", Ok(text.to_owned()));
        file.read("other.xml", Ok(text.replace("Roof", "Cellar")));
        assert!(file.info().unwrap().problem.unwrap().contains("gsn.xml has the container already"));
        file.gone("gsn.xml");
        let info = file.info().unwrap();
        assert_eq!((info.name.as_deref(), info.problem), (Some("Cellar"), None));
        file.gone("other.xml");
        assert!(file.info().is_none());
    }
}
