//! Checks a store that serves meanwhile.
//!
//! The check covers the state at its beginning: the parts of one version, which stay while the check holds the version, and
//! the log as far as it was written. A flush may recycle log segments during the check; then the check starts again.

use std::sync::Arc;

use store::{ByteProgress, CheckReport, Finding, StoreError};

use super::checker::Checker;
use crate::core::Core;
use crate::manifest::ManifestContent;
use crate::part::PartInfo;

/// The largest number of attempts, because a flush may recycle the log during each.
const ATTEMPTS_MAX: usize = 20;

/// Checks all files of an open store.
pub(crate) fn check_live(core: &Core, progress: &mut ByteProgress<'_>) -> Result<CheckReport, StoreError> {
    let mut attempts = 0;
    loop {
        attempts += 1;
        let last = attempts == ATTEMPTS_MAX;
        let mut check = Checker::new(core.disk.as_ref(), &core.layout, progress);
        check.live = true;
        let version = core.state.lock().version.clone();
        // In this order, so that the segments have all rows that are durable by now.
        let durable = core.progress().durable;
        let segments = core.segments.written();
        let Some(manifest) = check.live_manifest() else {
            return Ok(check.finish());
        };
        if !version.has_exactly(&manifest) && !last {
            // An edit is in the file, but not in the version yet.
            std::thread::sleep(std::time::Duration::from_millis(20));
            continue;
        }
        check.meter.total = segments.iter().map(|(_, bytes)| bytes).sum::<u64>() + 2 * version.size().1;
        let known = check.definitions(&manifest);
        let limited: Vec<_> = segments.iter().map(|(number, bytes)| (*number, Some(*bytes))).collect();
        if known {
            check.log(&manifest, &limited, u64::MAX, Some(durable));
        }
        let still: Vec<u64> = core.segments.written().into_iter().map(|(number, _)| number).collect();
        let taken = segments.iter().any(|(number, _)| !still.contains(number));
        if taken && check.report.is_damaged() {
            if !last {
                continue;
            }
            check.report.findings.clear();
            let what = "the log changes too fast to be checked while the store serves";
            let finding = Finding::note(&core.layout.log, what);
            check.find(finding.with(
                "Nothing is known to be wrong with it.",
                "Check again when there is less load, or stop the server first.",
            ));
        }
        check.ranges(&manifest);
        let parts: Vec<Arc<PartInfo>> = version.all().map(|part| part.info.clone()).collect();
        check.parts(&parts, known);
        return Ok(check.finish());
    }
}

impl Checker<'_, '_> {
    fn live_manifest(&mut self) -> Option<ManifestContent> {
        let path = self.layout.manifest();
        match self.read(&path) {
            Ok(bytes) => self.manifest(&bytes),
            Err(error) => {
                let means =
                    "The store serves what it has in memory, but does not open again without its manifest.";
                self.fail(&error, means, super::words::RESTORE);
                None
            }
        }
    }
}
