//! `Email`: the mail server, and who gets a mail for each row.

use std::net::IpAddr;

use crate::virtual_sensors::descriptor::Field;
use crate::virtual_sensors::fault::Fault;
use crate::virtual_sensors::plan::params::Params;
use crate::virtual_sensors::plan::secret::Secret;

/// Mail for each row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmailExport {
    /// The name or address of the mail server.
    pub server: String,
    pub port: u16,
    /// How the connection is encrypted.
    pub encryption: Encryption,
    /// The file with the authority of the server's certificate; the authorities of the system without it.
    pub cafile: Option<String>,
    /// The user, if the server wants one. GSN does not have the word.
    pub user: Option<String>,
    /// The password of the user.
    pub password: Option<Secret>,
    /// The address of the sender.
    pub sender: String,
    /// The address of the receiver. A row with the field `receiver` names another one.
    pub receiver: Option<String>,
    /// The subject. A row with the field `subject` has another one.
    pub subject: String,
    /// Whether the output has the field `message`: the text of the mail. A row without text in it sends nothing, as in GSN.
    pub has_message: bool,
}

/// How a connection of SMTP is encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encryption {
    /// Not at all.
    None,
    /// After the command STARTTLS, which the server must know.
    StartTls,
    /// From the beginning.
    Tls,
}

impl Encryption {
    /// The usual port.
    fn port(self) -> i64 {
        match self {
            Self::None => 25,
            Self::StartTls => 587,
            Self::Tls => 465,
        }
    }
}

const SUBJECT_DEFAULT: &str = "GSN-Notification";

impl EmailExport {
    pub(super) fn target(&self) -> String {
        let receiver = self.receiver.as_deref().unwrap_or("the receivers that rows name");
        format!("smtp://{}:{}, to {receiver}", self.server, self.port)
    }
}

pub(super) fn read(params: &mut Params<'_>, output: &[Field]) -> Result<EmailExport, Fault> {
    let has_field = |name: &str| output.iter().any(|field| field.name.value == name);
    let server = server(params)?;
    let encryption = encryption(params, &server)?;
    let port = params.number_or("port", encryption.port(), 1, i64::from(u16::MAX))?;
    let cafile = cafile(params, encryption)?;
    let (user, password) = login(params, encryption, &server)?;
    let sender = address(params, "sender-email")?;
    let receiver = match has_field("receiver") && params.text("receiver-email").is_none() {
        true => None,
        false => Some(address(params, "receiver-email")?),
    };
    Ok(EmailExport {
        server,
        port: u16::try_from(port).unwrap_or_default(),
        encryption,
        cafile,
        user,
        password,
        sender,
        receiver,
        subject: params.text("subject").unwrap_or_else(|| SUBJECT_DEFAULT.to_owned()),
        has_message: has_field("message"),
    })
}

fn server(params: &mut Params<'_>) -> Result<String, Fault> {
    let said = &params.needed("mail-server")?.value;
    let is_host =
        !said.value.is_empty() && said.value.chars().all(|c| c.is_alphanumeric() || "-._:".contains(c));
    // A port after the name would be one of an address of IPv6.
    let has_port = said.value.matches(':').count() == 1;
    if is_host && !has_port {
        return Ok(said.value.clone());
    }
    let reason = "mail-server is not the name or the address of a machine; the parameter port has the port";
    Err(Fault::invalid(said.place, reason))
}

/// A server on this machine needs no encryption, all others do unless the descriptor says otherwise.
fn encryption(params: &mut Params<'_>, server: &str) -> Result<Encryption, Fault> {
    let Some(said) = params.take("encryption").map(|pair| &pair.value) else {
        return Ok(if is_loopback(server) { Encryption::None } else { Encryption::StartTls });
    };
    match said.value.to_lowercase().as_str() {
        "none" => Ok(Encryption::None),
        "starttls" => Ok(Encryption::StartTls),
        "tls" => Ok(Encryption::Tls),
        text => {
            let reason = format!("encryption is {text:?}; it is none, starttls or tls");
            Err(Fault::invalid(said.place, reason))
        }
    }
}

fn cafile(params: &mut Params<'_>, encryption: Encryption) -> Result<Option<String>, Fault> {
    let cafile = params.text("cafile");
    match params.take("cafile") {
        Some(pair) if encryption == Encryption::None => {
            let reason = "cafile needs an encrypted connection; add encryption = starttls or tls";
            Err(Fault::invalid(pair.key.place, reason))
        }
        _ => Ok(cafile),
    }
}

fn login(
    params: &mut Params<'_>,
    encryption: Encryption,
    server: &str,
) -> Result<(Option<String>, Option<Secret>), Fault> {
    let (user, password) = (params.text("user"), params.text("password").map(Secret::new));
    if let Some(pair) = params.take("password").filter(|_| user.is_none() && password.is_some()) {
        return Err(Fault::invalid(pair.key.place, "password needs the parameter \"user\""));
    }
    let is_open = encryption == Encryption::None && !is_loopback(server);
    if let Some(pair) = params.take("user").filter(|_| user.is_some() && is_open) {
        let reason =
            "a login is not sent to another machine without encryption; set encryption to starttls or tls";
        return Err(Fault::invalid(pair.key.place, reason));
    }
    Ok((user, password))
}

fn is_loopback(server: &str) -> bool {
    server.eq_ignore_ascii_case("localhost") || server.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
}

/// A mail address: a name and a domain in ASCII. The exporter reads it more exactly.
fn address(params: &mut Params<'_>, key: &'static str) -> Result<String, Fault> {
    let said = &params.needed(key)?.value;
    let has_parts =
        said.value.rsplit_once('@').is_some_and(|(name, domain)| !name.is_empty() && !domain.is_empty());
    if has_parts && said.value.chars().all(|c| c.is_ascii_graphic()) {
        return Ok(said.value.clone());
    }
    let reason = format!("{key} is {:?}; it is one address such as ann@example.org, in ASCII", said.value);
    Err(Fault::invalid(said.place, reason))
}
