//! A connection to a mail server, for one mail.

use std::error::Error as _;
use std::path::Path;
use std::time::Duration;

use clients::outgoing::AllowedTargets;
use clients::tls::read_certificates;
use lettre::Message;
use lettre::transport::smtp::Error;
use lettre::transport::smtp::authentication::{Credentials, DEFAULT_MECHANISMS};
use lettre::transport::smtp::client::{AsyncSmtpConnection, Certificate, CertificateStore, TlsParameters};
use lettre::transport::smtp::commands::{Data, Mail, Rcpt};
use lettre::transport::smtp::extension::ClientId;
use tokio::task::spawn_blocking;
use tokio::time::timeout;
use virtual_sensors::{EmailExport, Encryption};

use super::text::one_line;
use crate::addresses::addresses;
use crate::exporters::limits::{EMAIL_ANSWER_TIMEOUT, EMAIL_LOGIN_TIMEOUT, EMAIL_QUIT_TIMEOUT};

/// What a server says to a mail.
#[derive(Debug)]
pub(super) enum Outcome {
    /// It has it.
    Taken,
    /// It refuses the mail for what it says or for its receiver, and would refuse it again.
    Refused(String),
}

/// A connection after the login, if there is one.
pub(super) struct Connection(AsyncSmtpConnection);

impl Connection {
    /// Connects, encrypts the connection and logs in.
    ///
    /// # Errors
    /// The fault is not in the mail: the same mail can be sent when the server or the descriptor is corrected.
    pub(super) async fn open(export: &EmailExport, targets: &AllowedTargets) -> Result<Self, String> {
        let opened = in_time(EMAIL_LOGIN_TIMEOUT, open(export, targets)).await;
        opened.map(Self).map_err(|reason| format!("{}:{}: {reason}", export.server, export.port))
    }

    /// Sends a mail.
    ///
    /// # Errors
    /// The server refuses the sender, or does not accept mail now.
    pub(super) async fn send(&mut self, mail: &Message) -> Result<Outcome, String> {
        in_time(EMAIL_ANSWER_TIMEOUT, self.transaction(mail)).await
    }

    async fn transaction(&mut self, mail: &Message) -> Result<Outcome, String> {
        let sender = mail.envelope().from().cloned();
        self.0.command(Mail::new(sender, Vec::new())).await.map_err(doing("the sender"))?;
        for receiver in mail.envelope().to() {
            let answer = self.0.command(Rcpt::new(receiver.clone(), Vec::new())).await;
            if let Err(error) = answer {
                return refused(error);
            }
        }
        if let Err(error) = self.0.command(Data).await {
            return refused(error);
        }
        match self.0.message(&mail.formatted()).await {
            Ok(_) => Ok(Outcome::Taken),
            Err(error) => refused(error),
        }
    }

    /// Ends the connection. What comes now changes nothing about the mail.
    pub(super) async fn close(mut self) {
        drop(timeout(EMAIL_QUIT_TIMEOUT, self.0.abort()).await);
    }
}

/// A permanent answer (5xx) refuses the mail; after all others it is sent again.
fn refused(error: Error) -> Result<Outcome, String> {
    match error.is_permanent() {
        true => Ok(Outcome::Refused(reason(&error))),
        false => Err(format!("the mail server does not take the mail: {}", reason(&error))),
    }
}

async fn open(export: &EmailExport, targets: &AllowedTargets) -> Result<AsyncSmtpConnection, String> {
    let name = ClientId::default();
    let tls = match export.encryption {
        Encryption::None => None,
        Encryption::StartTls | Encryption::Tls => Some(tls(export).await?),
    };
    let (at_once, later) = match export.encryption {
        Encryption::Tls => (tls, None),
        Encryption::StartTls | Encryption::None => (None, tls),
    };
    let addresses = addresses(targets, &export.server, export.port).await?;
    let connected =
        AsyncSmtpConnection::connect_tokio1(addresses.as_slice(), None, &name, at_once, None).await;
    let mut connection = connected.map_err(doing("the connection"))?;
    if let Some(tls) = later {
        connection.starttls(tls, &name).await.map_err(doing("STARTTLS"))?;
    }
    if let Some(user) = &export.user {
        let password = export.password.as_ref().map_or("", |password| password.reveal());
        let credentials = Credentials::new(user.clone(), password.to_owned());
        connection.auth(DEFAULT_MECHANISMS, &credentials).await.map_err(doing("the login"))?;
    }
    Ok(connection)
}

/// The check of the server's certificate. It is read for each connection, so a renewed file is used.
async fn tls(export: &EmailExport) -> Result<TlsParameters, String> {
    let (server, cafile) = (export.server.clone(), export.cafile.clone());
    let read = spawn_blocking(move || {
        let mut builder = TlsParameters::builder(server);
        if let Some(cafile) = &cafile {
            builder = builder.certificate_store(CertificateStore::None);
            let authorities = read_certificates(Path::new(cafile)).map_err(|error| error.to_string())?;
            for authority in authorities {
                let authority = Certificate::from_der(authority.to_vec());
                let authority = authority.map_err(|error| format!("{cafile}: {}", reason(&error)))?;
                builder = builder.add_root_certificate(authority);
            }
        }
        builder.build().map_err(|error| reason(&error))
    });
    read.await.map_err(|error| format!("the certificates were not read: {error}"))?
}

fn doing(what: &'static str) -> impl Fn(Error) -> String {
    move |error| format!("{what}: {}", reason(&error))
}

/// The code of the answer with its text, or the innermost cause.
fn reason(error: &Error) -> String {
    let text = match error.source() {
        None => error.to_string(),
        Some(first) => {
            let mut cause = first;
            while let Some(next) = cause.source() {
                cause = next;
            }
            cause.to_string()
        }
    };
    let code = error.status().map(|code| format!("{code} "));
    one_line(&format!("{}{text}", code.unwrap_or_default()))
}

async fn in_time<T>(time: Duration, answer: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    match timeout(time, answer).await {
        Ok(answer) => answer,
        Err(_) => Err(format!("the mail server did not answer within {} s", time.as_secs())),
    }
}
