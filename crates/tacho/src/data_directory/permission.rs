//! Whether this user may use a data directory. A refusal names the directory's owner.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use anyhow::bail;
use rustix::fs::{Access, access};
use rustix::process::geteuid;
use store_local::backup::RESTORE_MARKER;

/// A permission that a command needs in a data directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Permission {
    Read,
    Change,
}

/// Checks that `data` is a directory that this user may use and whose restore was finished.
///
/// The error names the owner and the remedy. A directory that does not exist passes.
pub(crate) fn check(data: &Path, wanted: Permission) -> anyhow::Result<()> {
    let needed = match wanted {
        Permission::Read => Access::READ_OK | Access::EXEC_OK,
        Permission::Change => Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK,
    };
    let Ok(metadata) = fs::metadata(data) else { return Ok(()) };
    if !metadata.is_dir() {
        bail!("{} is a file, not a data directory; name a directory with --data", data.display());
    }
    if access(data, needed).is_ok() {
        return refuse_unfinished(data);
    }
    let (owner, me) = (user(metadata.uid()), user(geteuid().as_raw()));
    let verb = if wanted == Permission::Read { "read" } else { "change" };
    if metadata.uid() == geteuid().as_raw() {
        bail!(
            "{me}, to whom the data directory {} belongs, may not {verb} it; allow it with `chmod u+rwx {0}`",
            data.display()
        );
    }
    bail!(
        "the data directory {} belongs to {owner}, and {me} may not {verb} it; run the command as {owner} \
         (sudo -u {owner} ...), or ask the running server with --url",
        data.display()
    )
}

/// Refuses a directory whose restore was not finished: its contents were not checked.
fn refuse_unfinished(data: &Path) -> anyhow::Result<()> {
    if fs::symlink_metadata(data.join(RESTORE_MARKER)).is_err() {
        return Ok(());
    }
    bail!(
        "the restore into {} was not finished (it holds {RESTORE_MARKER}); remove the directory and restore again",
        data.display()
    )
}

/// The name of a user, or its number if it has no name.
fn user(id: u32) -> String {
    let names = fs::read_to_string("/etc/passwd").unwrap_or_default();
    name_of(&names, id).map_or_else(|| format!("user {id}"), str::to_owned)
}

/// Looks up a user's name in the text of `/etc/passwd`.
fn name_of(names: &str, id: u32) -> Option<&str> {
    names.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (name, number) = (fields.next()?, fields.nth(1)?);
        (number.parse() == Ok(id)).then_some(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usable_and_missing_directories_are_no_error() {
        let directory = tempfile::tempdir().unwrap();
        check(directory.path(), Permission::Change).unwrap();
        check(&directory.path().join("new"), Permission::Change).unwrap();
        fs::write(directory.path().join("file"), "").unwrap();
        assert!(
            check(&directory.path().join("file"), Permission::Read)
                .unwrap_err()
                .to_string()
                .contains("is a file")
        );
    }

    #[test]
    fn users_have_names() {
        let names = "root:x:0:0:root:/root:/bin/bash\nbroken\nnobody:x:65534:65534::/:/bin/false\n";
        assert_eq!((name_of(names, 65_534), name_of(names, 7)), (Some("nobody"), None));
    }
}
