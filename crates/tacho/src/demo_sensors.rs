//! The virtual sensors of `tacho demo`.

use std::fs;
use std::path::Path;

use anyhow::Context;

/// The files with their names.
const FILES: [(&str, &str); 2] = [
    ("mean-speed.toml", include_str!("../demo/mean-speed.toml")),
    ("mean-speed-minute.toml", include_str!("../demo/mean-speed-minute.toml")),
];

/// Writes the sensors into a directory. A file that is there already stays as it is.
pub(crate) fn write(directory: &Path) -> anyhow::Result<()> {
    let context = || format!("cannot write virtual sensors into {}", directory.display());
    fs::create_dir_all(directory).with_context(context)?;
    for (name, text) in FILES {
        let path = directory.join(name);
        if !path.exists() {
            fs::write(path, text).with_context(context)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use sensors::virtual_sensors::{Descriptor, Plan};

    use super::*;

    #[test]
    fn the_files_are_valid_and_a_changed_one_stays() {
        let directory = tempfile::tempdir().unwrap();
        let changed = directory.path().join(FILES[0].0);
        fs::write(&changed, "changed").unwrap();
        write(directory.path()).unwrap();
        assert_eq!(fs::read_to_string(changed).unwrap(), "changed");
        for (name, text) in FILES {
            assert!(directory.path().join(name).exists());
            let plan = Plan::new(&Descriptor::parse(text).unwrap()).unwrap();
            assert_eq!(plan.notes, [], "{name}");
        }
    }
}
