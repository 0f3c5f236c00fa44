//! The progress of an import on the terminal.

use import::Counted;

use crate::progress::Progress;

/// Shows the progress of a file.
pub(super) fn progress(counted: Counted) -> Box<dyn FnMut(u64, u64)> {
    let mut progress = match counted {
        Counted::Bytes => Progress::new("importing"),
        Counted::Rows => Progress::rows("importing"),
    };
    Box::new(move |done, total| progress.at(done, total))
}
