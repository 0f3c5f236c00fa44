//! Classes that are not here, and what replaces them.

use crate::virtual_sensors::descriptor::Located;
use crate::virtual_sensors::fault::Fault;

const REPLACED: &[(&str, &str)] = &[
    (
        "StreamRRDExporter",
        "files of RRDtool are not written; keep the output with a retention, or use StreamExporter",
    ),
    ("GridRenderer", "draw the output in the dashboard"),
    ("SMS", "use the class Webhook with the address of a service that sends messages"),
    ("Voip", "use the class Webhook with the address of a service that calls"),
    ("HBaseStorage", "the output goes to the store of this server"),
    ("R", "programs in R are not run; write the computation as SQL or as a ScriptletProcessor"),
    ("Matlab", "programs in Matlab are not run; write the computation as SQL or as a ScriptletProcessor"),
    ("Modelling", "models in Java are not run; write the computation as SQL or as a ScriptletProcessor"),
    ("GridModel", "models in Java are not run; write the computation as SQL or as a ScriptletProcessor"),
    ("WebInteractive", "commands from the web cannot be given here; use calls of devices (RPC)"),
];

/// The classes that are here.
const PRESENT: &str = "Bridge, StatsBridge, ScheduledBridge, ClockedBridge, Counter, SMACleaner, DataClean, GPSNMEA, \
                       ScriptletProcessor, Chart, MQTTExporter, Webhook, Email, StreamExporter and ScheduledStreamExporter";

/// The fault of a class that is not here.
pub(super) fn refuse(said: &Located<String>, name: &str) -> Fault {
    let reason = match REPLACED.iter().find(|(known, _)| *known == name) {
        Some((_, instead)) => format!("class {name} is not here; {instead}"),
        None => format!("{:?} is not a class that is here; classes are {PRESENT}", said.value),
    };
    Fault::unsupported(said.place, reason)
}
