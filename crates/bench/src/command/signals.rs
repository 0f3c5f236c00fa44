//! Ctrl-C and SIGTERM end a run.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGINT, SIGTERM};

use load::{Error, Result};

/// Returns a flag that the first Ctrl-C sets, so that the run ends in order. The second one ends the process at once.
pub fn stop_on_signals() -> Result<Arc<AtomicBool>> {
    // A separate flag: the caller may set the other one before the first signal.
    let (stop, signalled) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    for signal in [SIGINT, SIGTERM] {
        let failed = || Error::io("taking over Ctrl-C");
        signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&signalled))
            .map_err(failed())?;
        for flag in [&signalled, &stop] {
            signal_hook::flag::register(signal, Arc::clone(flag)).map_err(failed())?;
        }
    }
    Ok(stop)
}
