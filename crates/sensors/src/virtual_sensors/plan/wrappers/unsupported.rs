//! Wrappers of GSN that are not here, and what to use instead of them.

use crate::virtual_sensors::descriptor::Located;
use crate::virtual_sensors::fault::Fault;

/// The wrappers that read something, for a wrong name.
const HERE: &str = "tacho, local, csv, http-get, mqtt, udp, remote-api, remote-rest, remote, remote-push, jdbc, replay, \
                    system-time, memory-usage, free-disk-space and multiformat";

/// What the wrappers that are not here are for, and what replaces them.
const REPLACED: &[(&str, &str)] = &[
    ("coap", "let the device publish over MQTT or HTTP, and read it with wrapper tacho"),
    ("serial", "let a program publish what the line says over MQTT, and read it with wrapper tacho"),
    ("rss", "let a program publish the entries over MQTT, and read it with wrapper tacho"),
    ("grid", "let a program publish the cells over MQTT, and read it with wrapper tacho"),
    ("imagefile", "images are not kept; publish their measures over MQTT, and read these with wrapper tacho"),
    ("gps-test", "use the simulated fleet (tacho demo), and read it with wrapper tacho"),
    ("zeromq", "use wrapper remote-api for another server, and mqtt for a broker"),
    ("zeromq-push", "upload with REST v3, or publish over MQTT and read it with wrapper tacho"),
    ("zeromq-sync", "use wrapper local for a sensor of this server, and remote-api for another server"),
    ("zeromq-async", "use wrapper local for a sensor of this server, and remote-api for another server"),
    ("remote-direct", "use wrapper remote-api"),
    ("toa5", "use wrapper csv with skip-first-lines"),
];

/// Hardware that is read by drivers in Java, and services that have ended: the beginnings of their names.
const GONE: &[&str] = &[
    "tinyos",
    "mica2",
    "wsn",
    "teds",
    "ss_",
    "stspiezometer",
    "swisspegel",
    "sensorscope",
    "tetraedre",
    "epuck",
    "usbcam",
    "usb-cam",
    "flickr",
    "twitter",
    "phone",
];

/// Why a wrapper is refused.
pub(super) fn refuse(said: &Located<String>, name: &str) -> Fault {
    if let Some((_, instead)) = REPLACED.iter().find(|(known, _)| *known == name) {
        return Fault::unsupported(said.place, format!("wrapper {name} is not here; {instead}"));
    }
    if GONE.iter().any(|gone| name.starts_with(gone)) {
        let reason = format!(
            "wrapper {name} reads hardware or a service that this server does not know; publish its values over MQTT, and \
             read them with wrapper tacho"
        );
        return Fault::unsupported(said.place, reason);
    }
    Fault::invalid(said.place, format!("{name:?} is not a wrapper; wrappers are {HERE}"))
}
