//! The login: answers requests for encryption, handles a cancel request, checks the password, and sends the messages before the first query.

use std::sync::Arc;
use std::time::Instant;

use hub::Hub;
use hub::caller::Caller;
use hub::clock::system_now;
use hub::registry::{API_KEY_PREFIX, OWN_DATABASE, RegistryError};
use hub::sql::Reader;
use pgwire::messages::PgWireBackendMessage as BackendMessage;
use pgwire::messages::startup::{
    Authentication, BackendKeyData, NegotiateProtocolVersion, ParameterStatus, SecretKey,
};
use wire::postgres::{First, Message};

use super::error::PgError;
use super::session::Session;
use super::settings::Settings;
use super::state::PostgresState;
use super::wire::{Ended, Wire};
use crate::refusals;

/// The protocol version, as one number.
const VERSION_3_0: i32 = 3 << 16;
/// The user that reads without a password, if the operator allows it.
const PUBLIC_USER: &str = "public";

/// The startup message of a client.
struct Startup {
    user: String,
    /// The database that the client names.
    database: Option<String>,
    minor: i16,
    /// Options of later protocol versions, which the door does not support.
    unknown_options: Vec<String>,
    settings: Vec<(String, String)>,
}

/// Logs a client in. `None` if the client is refused or only sent a cancel request.
pub(super) async fn log_in(state: &Arc<PostgresState>, mut wire: Wire) -> Result<Option<Session>, Ended> {
    let asked = match ask(state, &mut wire).await {
        Ok(asked) => asked,
        Err(Ended::Refused(error)) => {
            state.refused(error.code);
            wire.refuse(error).await?;
            return Ok(None);
        }
        Err(ended) => return Err(ended),
    };
    let Some((reader, startup)) = asked else { return Ok(None) };
    // Ignores unsupported values without an error: JDBC always sends its own time zone. The reported settings show the values.
    let mut settings = Settings::new(&startup.user);
    for (name, value) in &startup.settings {
        drop(settings.set(&name.to_ascii_lowercase(), Some(value)));
    }
    let cancel = state.cancels.register();
    welcome(&mut wire, &startup, &settings, (cancel.process, cancel.secret)).map_err(Ended::Refused)?;
    Ok(Some(Session::new(wire, state, reader, settings, cancel)))
}

async fn ask(state: &Arc<PostgresState>, wire: &mut Wire) -> Result<Option<(Reader, Startup)>, Ended> {
    let mut asked = 0;
    let (minor, parameters) = loop {
        match wire.first().await? {
            // A client may request TLS once and Kerberos once.
            First::Tls | First::Kerberos if asked >= 2 || wire.is_encrypted() => {
                let message = "encryption was asked for too often on this connection";
                return Err(Ended::Refused(PgError::fatal("08P01", message)));
            }
            First::Tls if let Some(tls) = &state.options.tls => {
                asked += 1;
                wire.encrypt(tls, &state.hub).await?;
            }
            First::Tls | First::Kerberos => {
                asked += 1;
                wire.decline().await?;
            }
            First::Cancel { process, secret } => {
                state.cancels.ask(process, secret);
                return Ok(None);
            }
            First::Startup { minor, parameters } => break (minor, parameters),
        }
    };
    if state.options.tls_required && !wire.is_encrypted() {
        let message =
            "this server requires TLS (postgres.tls_required); connect with sslmode=require or verify-full";
        return Err(Ended::Refused(PgError::fatal("28000", message)));
    }
    let startup = startup(minor, parameters).map_err(Ended::Refused)?;
    let reader = authenticate(state, wire, &startup.user).await?;
    let reader = in_database(&state.hub, reader, &startup).map_err(Ended::Refused)?;
    Ok(Some((reader, startup)))
}

fn startup(minor: i16, parameters: Vec<(String, String)>) -> Result<Startup, PgError> {
    let mut startup = Startup {
        user: String::new(),
        database: None,
        minor,
        unknown_options: Vec::new(),
        settings: Vec::new(),
    };
    for (name, value) in parameters {
        match name.as_str() {
            "user" => startup.user = value,
            "database" => startup.database = Some(value).filter(|name| !name.is_empty()),
            "options" => startup.settings.extend(options(&value)),
            "replication" if matches!(value.as_str(), "false" | "off" | "no" | "0") => {}
            "replication" => return Err(PgError::fatal("0A000", "there is no replication here")),
            _ if name.starts_with("_pq_.") => startup.unknown_options.push(name),
            _ => startup.settings.push((name, value)),
        }
    }
    if startup.user.is_empty() {
        return Err(PgError::fatal("28000", "the startup message names no user"));
    }
    Ok(startup)
}

/// The reader of the database that the client names.
fn in_database(hub: &Hub, reader: Reader, startup: &Startup) -> Result<Reader, PgError> {
    let Some(name) = &startup.database else { return Ok(reader) };
    match hub.database(reader.caller(), name) {
        Ok(database) => Ok(reader.in_database(database)),
        // Libraries use the user's name as database if the client names none.
        Err(RegistryError::Unknown { .. }) if *name == startup.user => Ok(reader),
        Err(RegistryError::Unknown { .. }) => {
            let message = format!(
                "database {name:?} does not exist; the tables of the devices are in {OWN_DATABASE:?}"
            );
            Err(PgError::fatal("3D000", message))
        }
        Err(error) => Err(error.into()),
    }
}

/// `-c name=value` and `--name=value`; a backslash keeps the blank after it.
fn options(text: &str) -> Vec<(String, String)> {
    let mut words = vec![String::new()];
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match (character, words.last_mut()) {
            ('\\', Some(word)) => word.extend(characters.next()),
            (blank, _) if blank.is_whitespace() => words.push(String::new()),
            (other, Some(word)) => word.push(other),
            (_, None) => {}
        }
    }
    let mut found = Vec::new();
    let mut words = words.into_iter().filter(|word| !word.is_empty());
    while let Some(word) = words.next() {
        let setting = match word.strip_prefix("--").or_else(|| word.strip_prefix("-c")) {
            Some("") => words.next(),
            Some(setting) => Some(setting.to_owned()),
            None => None,
        };
        if let Some((name, value)) = setting.as_deref().and_then(|setting| setting.split_once('=')) {
            found.push((name.to_owned(), value.to_owned()));
        }
    }
    found
}

/// Checks the password. The client sends it in clear text: the registry stores argon2 hashes, and SCRAM would need another hash
/// for every user.
async fn authenticate(state: &Arc<PostgresState>, wire: &mut Wire, user: &str) -> Result<Reader, Ended> {
    let tenant = state.hub.registry().default_tenant();
    if state.options.public_read && user == PUBLIC_USER {
        return Ok(Caller::public(tenant).into());
    }
    wire.push(BackendMessage::Authentication(Authentication::CleartextPassword)).map_err(Ended::Refused)?;
    wire.flush().await?;
    let Message::Password(password) = wire.message().await? else {
        return Err(Ended::Refused(PgError::fatal("08P01", "a password is expected")));
    };
    if password.starts_with(API_KEY_PREFIX) {
        return key_reader(state, wire, user, &password);
    }
    let (hub, login) = (Arc::clone(&state.hub), user.to_owned());
    let address = Some(wire.peer().ip());
    let attempt = hub.logins().begin(address, &login, Instant::now());
    let attempt = attempt.map_err(|refused| Ended::Refused(refused.into()))?;
    let check = move || hub.registry().authenticate(&login, &password);
    let checked = state.logins.run(check).await.map_err(|refused| Ended::Refused(refused.into()))?;
    let known = checked.map_err(|error| Ended::Refused(error.into()))?;
    attempt.end(known.is_some(), Instant::now());
    match known {
        Some(known) => Ok(Caller::user(&known).into()),
        None => {
            refusals::login(&state.hub, hub::Door::Postgres, Some(wire.peer()), user);
            let message = format!("password authentication failed for user {user:?}");
            Err(Ended::Refused(PgError::fatal("28P01", message)))
        }
    }
}

/// The reader of an API key, which a client sends as the password. A key is random and long, so guesses need no slowing down.
fn key_reader(state: &PostgresState, wire: &Wire, user: &str, key: &str) -> Result<Reader, Ended> {
    let refused = |message: String| {
        refusals::login(&state.hub, hub::Door::Postgres, Some(wire.peer()), user);
        Ended::Refused(PgError::fatal("28P01", message))
    };
    match state.hub.registry().check_api_key(key, system_now()) {
        Ok(caller) if caller.login() == user.to_lowercase() => Ok(caller.into()),
        Ok(_) => Err(refused(format!("the API key is not one of user {user:?}"))),
        Err(error) => Err(refused(error.to_string())),
    }
}

fn welcome(
    wire: &mut Wire,
    startup: &Startup,
    settings: &Settings,
    (process, secret): (i32, i32),
) -> Result<(), PgError> {
    if startup.minor > 0 || !startup.unknown_options.is_empty() {
        // The door speaks version 3.0. The client accepts it or disconnects.
        let negotiate = NegotiateProtocolVersion::new(VERSION_3_0, startup.unknown_options.clone());
        wire.push(BackendMessage::NegotiateProtocolVersion(negotiate))?;
    }
    wire.push(BackendMessage::Authentication(Authentication::Ok))?;
    for (name, value) in settings.reported() {
        wire.push(BackendMessage::ParameterStatus(ParameterStatus::new(name.into(), value)))?;
    }
    wire.push(BackendMessage::BackendKeyData(BackendKeyData::new(process, SecretKey::I32(secret))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameters(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn options_are_settings() {
        let found = options(r"-c statement_timeout=5000 -csearch_path=a\ b --geqo=off -d 5 junk");
        let expected = [("statement_timeout", "5000"), ("search_path", "a b"), ("geqo", "off")];
        assert_eq!(found, parameters(&expected));
        assert_eq!(options(r"-c"), []);
        assert_eq!(options("\\"), []);
    }

    #[test]
    fn a_startup_names_a_user_and_perhaps_a_database() {
        for (database, named) in [
            (None, None),
            (Some("tacho"), Some("tacho")),
            (Some("metrics"), Some("metrics")),
            (Some(""), None),
        ] {
            let mut all = parameters(&[("user", "ann"), ("application_name", "psql")]);
            all.extend(database.map(|name| ("database".to_owned(), name.to_owned())));
            let startup = startup(0, all).unwrap_or_else(|error| panic!("{error:?}"));
            assert_eq!((startup.settings.len(), startup.database.as_deref()), (1, named));
        }
        for (wrong, code) in [
            (parameters(&[("database", "tacho")]), "28000"),
            (parameters(&[("user", "ann"), ("replication", "database")]), "0A000"),
        ] {
            assert_eq!(startup(0, wrong).err().map(|error| error.code), Some(code));
        }
    }
}
