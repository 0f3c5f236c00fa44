//! The file of the container, GSN's `gsn.xml`.

use sensors::virtual_sensors::Container;
use sensors::virtual_sensors::plan::{DatabaseOptions, StoragePlace};

/// What callers see of the file of the container.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ContainerInfo {
    /// The name of the file in the directory.
    pub file: String,
    /// The name of the server.
    pub name: Option<String>,
    /// Its author.
    pub author: Option<String>,
    /// The address of the author.
    pub email: Option<String>,
    /// The text for people.
    pub description: Option<String>,
    /// The database of sensors without a storage of their own, in words.
    pub storage: Option<String>,
    /// What the file says without effect, with places.
    pub notes: Vec<String>,
    /// Why the file, as it is now, is not used.
    pub problem: Option<String>,
}

/// The file of the container, as it was read.
#[derive(Debug, Default)]
pub(super) struct ContainerFile {
    file: Option<String>,
    container: Option<Container>,
    problem: Option<String>,
}

/// Whether a text is that of a container, and not of a sensor.
pub(super) fn is_container(text: &str) -> bool {
    text.contains("<sensor-server")
}

impl ContainerFile {
    /// A file has this text now. The container stays as it was if the text has a fault.
    pub(super) fn read(&mut self, file: &str, text: &str) {
        if let Some(known) = self.file.as_ref().filter(|known| *known != file) {
            let problem = format!("{file}: {known} has the container already; remove one of them");
            tracing::warn!(file, "container file not used: {problem}");
            self.problem = Some(problem);
            return;
        }
        self.file = Some(file.to_owned());
        match Container::from_xml(text) {
            Ok(container) => (self.container, self.problem) = (Some(container), None),
            Err(fault) => {
                tracing::warn!(file, "container file not used as it is now: {fault}");
                self.problem = Some(fault.to_string());
            }
        }
    }

    /// A file is gone.
    pub(super) fn gone(&mut self, file: &str) {
        if self.file.as_deref() == Some(file) {
            *self = Self::default();
        }
    }

    /// The database of a sensor that names no storage.
    pub(super) fn storage(&self) -> Option<&DatabaseOptions> {
        match self.container.as_ref()?.storage.as_ref()? {
            StoragePlace::Database(database) => Some(database),
            StoragePlace::Own => None,
        }
    }

    /// What callers see of it.
    pub(super) fn info(&self) -> Option<ContainerInfo> {
        let info = ContainerInfo {
            file: self.file.clone()?,
            problem: self.problem.clone(),
            ..ContainerInfo::default()
        };
        let Some(container) = &self.container else { return Some(info) };
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
        let mut file = ContainerFile::default();
        assert!(file.info().is_none());
        let text = "<sensor-server><name>Roof</name><storage url='jdbc:mysql://h/gsn' driver='com.mysql.jdbc.Driver' \
                    user='gsn' password='secret'/></sensor-server>";
        file.read("gsn.xml", text);
        assert_eq!(file.storage().unwrap().password, "secret");
        file.read("gsn.xml", "<sensor-server>");
        let info = file.info().unwrap();
        assert_eq!((info.name.as_deref(), info.storage.as_deref()), (Some("Roof"), Some("MySQL h:3306/gsn")));
        assert!(info.problem.unwrap().starts_with("line 1"));
        file.read("other.xml", text);
        assert!(file.info().unwrap().problem.unwrap().contains("gsn.xml has the container already"));
        file.gone("gsn.xml");
        assert!(file.info().is_none());
    }
}
