//! The mail of a row.

use lettre::message::{Mailbox, SinglePart};
use lettre::{Address, Message};
use virtual_sensors::{EmailExport, OutputRow, SensorOutput};
use xxhash_rust::xxh3::xxh3_64;

use super::text::one_line;
use crate::exporters::limits::EMAIL_SUBJECT_CHARACTERS_MAX;
use crate::exporters::row;
use crate::time::iso;

/// Checks the addresses of the descriptor: a fault there is not a fault of a row.
///
/// # Errors
/// Names the text that is not an address.
pub(super) fn check(export: &EmailExport) -> Result<(), String> {
    address(&export.sender)?;
    export.receiver.as_deref().map_or(Ok(()), |receiver| address(receiver).map(drop))
}

/// The mail of a row; `None` if the row says nothing.
///
/// # Errors
/// The row has no receiver, or one that is not an address.
pub(super) fn of(
    export: &EmailExport,
    output: &SensorOutput,
    one: &OutputRow,
) -> Result<Option<Message>, String> {
    let text = match export.has_message {
        true => match field(output, one, "message") {
            Some(text) => text,
            None => return Ok(None),
        },
        false => all_fields(output, one),
    };
    let receiver = field(output, one, "receiver").or_else(|| export.receiver.clone());
    let receiver = receiver.ok_or("the row has no receiver, and there is no receiver-email")?;
    let (sender, receiver) = (address(&export.sender)?, address(&receiver)?);
    let id = message_id(output, one, &sender, &receiver);
    let subject = field(output, one, "subject").unwrap_or_else(|| export.subject.clone());
    let mail = Message::builder()
        .from(Mailbox::new(None, sender))
        .to(Mailbox::new(None, receiver))
        .subject(of_subject(&subject))
        .message_id(Some(id))
        .singlepart(SinglePart::plain(lines(&text)));
    mail.map(Some).map_err(|error| format!("the row cannot be a mail: {error}"))
}

/// The value of a field as text; `None` if it is empty.
fn field(output: &SensorOutput, one: &OutputRow, name: &str) -> Option<String> {
    let at = output.fields.iter().position(|field| field.name == name)?;
    let text = row::shown(one.values.get(at)?.as_ref()?);
    (!text.trim().is_empty()).then_some(text)
}

/// The fields of a row, one on each line.
fn all_fields(output: &SensorOutput, one: &OutputRow) -> String {
    let mut text = format!("sensor: {}\ntimed: {}\n", output.sensor, iso(one.us.div_euclid(1_000)));
    for (field, value) in output.fields.iter().zip(&one.values) {
        if let Some(value) = value {
            text.push_str(&format!("{}: {}\n", field.name, row::shown(value)));
        }
    }
    text
}

/// An address in ASCII. A line end, or another character that ends a command or a header, is in no such address.
fn address(text: &str) -> Result<Address, String> {
    let text = text.trim();
    let read = text.parse().ok().filter(|_| text.chars().all(|c| c.is_ascii_graphic()));
    read.ok_or_else(|| format!("{text:?} is not a mail address, such as ann@example.org"))
}

/// A subject has no line ends, so a row cannot add headers.
fn of_subject(subject: &str) -> String {
    one_line(subject).chars().take(EMAIL_SUBJECT_CHARACTERS_MAX).collect()
}

/// A text with one kind of line ends: a single CR must not be in a mail (RFC 5322, section 2.3).
fn lines(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n")
}

/// The same for a row that is sent again, so that mail programs can leave out the second.
fn message_id(output: &SensorOutput, one: &OutputRow, sender: &Address, receiver: &Address) -> String {
    let of = format!("{}\0{sender}\0{receiver}", output.sensor);
    format!("<{}.{:016x}@{}>", one.us, xxh3_64(of.as_bytes()), sender.domain())
}

#[cfg(test)]
mod tests {
    use model::Value;
    use virtual_sensors::{DataType, Encryption, SensorField};

    use super::*;

    const FIELDS: [&str; 3] = ["receiver", "subject", "message"];

    fn export() -> EmailExport {
        EmailExport {
            server: "mail.example.org".to_owned(),
            port: 25,
            encryption: Encryption::None,
            cafile: None,
            user: None,
            password: None,
            sender: "tacho@example.org".to_owned(),
            receiver: Some("ann@example.org".to_owned()),
            subject: "GSN-Notification".to_owned(),
            has_message: true,
        }
    }

    fn output(fields: &[&str]) -> SensorOutput {
        let field = |name: &&str| SensorField {
            name: (*name).to_owned(),
            data_type: DataType::Varchar(None),
            unit: String::new(),
            description: String::new(),
        };
        SensorOutput {
            sensor: "street".to_owned(),
            fields: fields.iter().map(field).collect(),
            has_unique_timestamps: true,
            history: None,
            export: None,
            storage: None,
        }
    }

    fn row(us: i64, values: &[&str]) -> OutputRow {
        let values = values.iter().map(|text| Some(Value::String((*text).to_owned())));
        OutputRow { us, values: values.collect() }
    }

    fn mail(values: [&str; 3]) -> Result<Option<String>, String> {
        let mail = of(&export(), &output(&FIELDS), &row(1_000_000, &values))?;
        Ok(mail.map(|mail| String::from_utf8(mail.formatted()).unwrap()))
    }

    fn header<'m>(mail: &'m str, name: &str) -> &'m str {
        let line = mail.lines().take_while(|line| !line.is_empty()).find_map(|line| line.strip_prefix(name));
        line.unwrap_or_else(|| panic!("no {name} in {mail}"))
    }

    #[test]
    fn a_row_names_receiver_subject_and_text() {
        let text = mail(["bob@example.org", "warm", "23 °C\n.\n"]).unwrap().unwrap();
        assert_eq!(header(&text, "To: "), "bob@example.org");
        assert_eq!(header(&text, "From: "), "tacho@example.org");
        assert_eq!(header(&text, "Subject: "), "warm");
        assert!(text.is_ascii(), "{text}");
        let text = mail(["", "", "x"]).unwrap().unwrap();
        assert_eq!(header(&text, "To: "), "ann@example.org");
        assert_eq!(header(&text, "Subject: "), "GSN-Notification");
    }

    #[test]
    fn a_row_without_text_sends_nothing_and_one_without_the_field_sends_all_fields() {
        assert_eq!(mail(["", "", " "]), Ok(None));
        let export = EmailExport { has_message: false, ..export() };
        let text = of(&export, &output(&["celsius"]), &row(1_000_000, &["3.5"])).unwrap().unwrap();
        let text = String::from_utf8(text.formatted()).unwrap();
        assert!(text.contains("sensor: street\r\ntimed: 1970-01-01T00:00:01.000Z\r\ncelsius: 3.5"), "{text}");
    }

    #[test]
    fn an_address_of_the_descriptor_is_checked_before_rows_are_sent() {
        assert_eq!(check(&export()), Ok(()));
        let sender = EmailExport { sender: "a@b..c".to_owned(), ..export() };
        let receiver = EmailExport { receiver: Some("ann".to_owned()), ..export() };
        assert!(check(&sender).unwrap_err().contains("a@b..c"));
        assert!(check(&receiver).unwrap_err().contains("\"ann\" is not a mail address"));
    }

    #[test]
    fn a_row_adds_no_header_and_no_receiver() {
        let text = mail(["", "warm\r\nBcc: eve@example.org\r\n\r\nX", "x"]).unwrap().unwrap();
        assert!(!text.lines().any(|line| line.starts_with("Bcc")), "{text}");
        for receiver in [
            "ann@example.org\r\nBcc: eve@example.org",
            "ann@example.org>\r\nRCPT TO:<eve@example.org",
            "ann@example.org, eve@example.org",
            "\"ann\r\n\"@example.org",
            "ann\u{e9}@example.org",
            "ann",
        ] {
            let refused = mail([receiver, "", "x"]).unwrap_err();
            assert!(refused.contains("not a mail address") && !refused.contains('\n'), "{refused}");
        }
        assert!(!mail(["", "", "a\rb\r\nc"]).unwrap().unwrap().contains("a\rb"));
    }

    #[test]
    fn a_row_that_comes_again_has_the_message_id_that_it_had() {
        let id = |us, receiver: &str| {
            let mail = of(&export(), &output(&FIELDS), &row(us, &[receiver, "", "x"])).unwrap().unwrap();
            header(&String::from_utf8(mail.formatted()).unwrap(), "Message-ID: ").to_owned()
        };
        assert_eq!(id(5, ""), id(5, "ann@example.org"));
        assert_ne!(id(5, ""), id(6, ""));
        assert_ne!(id(5, ""), id(5, "bob@example.org"));
        assert!(id(5, "").starts_with("<5.") && id(5, "").ends_with("@example.org>"), "{}", id(5, ""));
    }
}
