//! Bounds of exporters.

use std::time::Duration;

/// Messages of a broker without their acknowledgement.
pub(super) const MQTT_MESSAGES_MAX: usize = 200;
/// Bytes of a packet of a broker.
pub(super) const MQTT_PACKET_BYTES_MAX: usize = 64 * 1024;
/// Bytes that are read from a broker at once.
pub(super) const MQTT_READ_BYTES: usize = 4 * 1024;
/// How long an exporter waits for the acknowledgements of its messages.
pub(super) const MQTT_ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// Rows of one request to an address.
pub(super) const WEBHOOK_ROWS_MAX: usize = 500;
/// Time from the connection to the end of the answer of an address.
pub(super) const WEBHOOK_TIMEOUT: Duration = Duration::from_secs(30);

/// Mails that an exporter sends in a minute. Further rows wait in the table of the sensor.
pub(super) const EMAIL_PER_MINUTE_MAX: usize = 60;
/// Characters of a subject. A longer one is cut: a line of a mail has at most 998 bytes.
pub(super) const EMAIL_SUBJECT_CHARACTERS_MAX: usize = 200;
/// Time from the connection to a mail server to the end of the login.
pub(super) const EMAIL_LOGIN_TIMEOUT: Duration = Duration::from_secs(60);
/// How long a server may take to answer for a mail. RFC 5321, section 4.5.3.2.6, says 10 minutes: a client that gives up earlier sends
/// mails twice.
pub(super) const EMAIL_ANSWER_TIMEOUT: Duration = Duration::from_secs(600);
/// How long an exporter waits for the answer to QUIT.
pub(super) const EMAIL_QUIT_TIMEOUT: Duration = Duration::from_secs(5);
