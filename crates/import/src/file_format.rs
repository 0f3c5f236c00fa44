//! The formats of files.

use std::path::PathBuf;

use super::time::Unit;

/// The format of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum FileFormat {
    /// CSV, with a header
    Csv,
    /// Parquet
    Parquet,
    /// InfluxDB's line protocol; each measurement is a table
    Lines,
}

impl FileFormat {
    /// The format that the file names have in common; an error if their extensions differ.
    pub fn of(files: &[PathBuf]) -> Result<Self, String> {
        let of = |file: &PathBuf| match file.extension().and_then(|ending| ending.to_str()) {
            Some("parquet") => Self::Parquet,
            Some("lp" | "line") => Self::Lines,
            _ => Self::Csv,
        };
        let mut formats = files.iter().map(of);
        let first = formats.next().unwrap_or(Self::Csv);
        match formats.all(|format| format == first) {
            true => Ok(first),
            false => Err("the files are of different kinds; import those of one kind at a time".to_owned()),
        }
    }
}

/// The unit of the times in a file of line protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Precision {
    Ns,
    Us,
    Ms,
    S,
}

impl Precision {
    /// The unit of the same name.
    pub(super) fn unit(self) -> Unit {
        match self {
            Self::Ns => Unit::Nanoseconds,
            Self::Us => Unit::Microseconds,
            Self::Ms => Unit::Milliseconds,
            Self::S => Unit::Seconds,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_file_extensions_select_the_format() {
        let of = |names: &[&str]| FileFormat::of(&names.iter().map(PathBuf::from).collect::<Vec<_>>());
        assert_eq!(of(&["a.parquet", "b.parquet"]), Ok(FileFormat::Parquet));
        assert_eq!(of(&["a.csv", "b.txt", "c"]), Ok(FileFormat::Csv));
        assert_eq!(of(&["a.lp"]), Ok(FileFormat::Lines));
        assert!(of(&["a.csv", "b.parquet"]).unwrap_err().contains("one kind at a time"));
    }
}
