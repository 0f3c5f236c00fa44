//! MySQL's protocol over a blocking socket. The handshake and the passwords use `mysql_common`. Commands and result
//! sets are parsed here, because a load generator counts rows and does not build them.

mod packet;

use std::time::Duration;

use mysql_common::constants::{CapabilityFlags, MariadbCapabilities};
use mysql_common::io::ParseBuf;
use mysql_common::packets::{AuthPlugin, AuthSwitchRequest, HandshakePacket, HandshakeResponse};
use mysql_common::proto::MySerialize as _;

use super::address::Address;
use super::link::{Link, SqlError};
use super::value::{Effect, Rows, Statement, Value};
use crate::cancel::CancelHandle;
use packet::{number, push_text, refusal, text_row, unexpected};

const QUIT: u8 = 0x01;
const QUERY: u8 = 0x03;
const PREPARE: u8 = 0x16;
const EXECUTE: u8 = 0x17;
const TYPE_LONG: u8 = 0x03;
const TYPE_STRING: u8 = 0xfe;
const OK: u8 = 0x00;
const EOF: u8 = 0xfe;
const ERROR: u8 = 0xff;
/// A packet of this length continues in the next one. Only rows and statements of 16 MiB and more are that long.
const LONGEST: usize = 0xff_ffff;
/// The number of utf8mb4_general_ci.
const UTF8MB4: u8 = 45;
/// The error code for statements that the server cannot prepare.
const UNSUPPORTED: &str = "1295";

/// The capabilities that the client asks for.
fn wanted() -> CapabilityFlags {
    CapabilityFlags::CLIENT_PROTOCOL_41
        | CapabilityFlags::CLIENT_SECURE_CONNECTION
        | CapabilityFlags::CLIENT_LONG_PASSWORD
        | CapabilityFlags::CLIENT_TRANSACTIONS
        | CapabilityFlags::CLIENT_PLUGIN_AUTH
        | CapabilityFlags::CLIENT_CONNECT_WITH_DB
        | CapabilityFlags::CLIENT_DEPRECATE_EOF
}

/// The packet before the handshake of TLS: the head of the login, with MariaDB's capabilities at its end.
fn tls_request(capabilities: CapabilityFlags, own: u32) -> Vec<u8> {
    let mut packet = capabilities.bits().to_le_bytes().to_vec();
    packet.extend_from_slice(&(LONGEST as u32).to_le_bytes());
    packet.push(UTF8MB4);
    packet.resize(28, 0);
    packet.extend_from_slice(&own.to_le_bytes());
    packet
}

/// A connection.
#[derive(Debug)]
pub(crate) struct Mysql {
    link: Link,
    /// The packet to write, including its header.
    out: Vec<u8>,
    sequence: u8,
    /// Whether result sets have no EOF packet between columns and rows.
    no_eof: bool,
    /// Whether MariaDB says if column definitions follow: it omits them for a prepared statement whose columns it has
    /// sent before. sysbench's client library asks for this too, and it changes the server's work by a tenth.
    says_metadata: bool,
}

impl Mysql {
    pub(super) fn connect(address: &Address, silence: Duration) -> Result<Self, SqlError> {
        let link = Link::connect(address, silence)?;
        let mut client = Self { link, out: Vec::new(), sequence: 0, no_eof: false, says_metadata: false };
        client.log_in(address)?;
        Ok(client)
    }

    pub(super) fn cancel_handle(&self) -> CancelHandle {
        self.link.cancel_handle()
    }

    pub(super) fn bytes(&self) -> (u64, u64) {
        (self.link.bytes_out, self.link.bytes_in)
    }

    pub(super) fn run(&mut self, sql: &[u8]) -> Result<Effect, SqlError> {
        self.command(QUERY, |out| out.extend_from_slice(sql))?;
        self.result(|_| ())
    }

    pub(super) fn rows(&mut self, sql: &str) -> Result<Rows, SqlError> {
        self.command(QUERY, |out| out.extend_from_slice(sql.as_bytes()))?;
        let mut rows = Rows::new();
        self.result(|row| rows.push(text_row(row)))?;
        Ok(rows)
    }

    pub(super) fn prepare(&mut self, sql: &str) -> Result<Option<Statement>, SqlError> {
        self.command(PREPARE, |out| out.extend_from_slice(sql.as_bytes()))?;
        let length = match self.answer() {
            Ok(length) => length,
            Err(error) if error.code() == Some(UNSUPPORTED) => return Ok(None),
            Err(error) => return Err(error),
        };
        let packet = &self.link.bytes()[..length];
        if length < 9 {
            return Err(unexpected("the answer to a prepare"));
        }
        let id = u32::from_le_bytes([packet[1], packet[2], packet[3], packet[4]]);
        let (columns, parameters) =
            (u16::from_le_bytes([packet[5], packet[6]]), u16::from_le_bytes([packet[7], packet[8]]));
        self.link.used(length);
        for definitions in [parameters, columns] {
            let eof = u16::from(definitions > 0 && !self.no_eof);
            for _ in 0..definitions + eof {
                let length = self.packet()?;
                self.link.used(length);
            }
        }
        Ok(Some(Statement(id)))
    }

    pub(super) fn execute(&mut self, statement: Statement, values: &[Value<'_>]) -> Result<Effect, SqlError> {
        self.command(EXECUTE, |out| {
            out.extend_from_slice(&statement.0.to_le_bytes());
            // No cursor; executed once.
            out.extend_from_slice(&[0, 1, 0, 0, 0]);
            if values.is_empty() {
                return;
            }
            // No value is NULL; types follow.
            out.extend(std::iter::repeat_n(0, values.len().div_ceil(8)));
            out.push(1);
            for value in values {
                out.extend_from_slice(&[
                    if matches!(value, Value::Int(_)) { TYPE_LONG } else { TYPE_STRING },
                    0,
                ]);
            }
            for value in values {
                match value {
                    Value::Int(number) => out.extend_from_slice(&number.to_le_bytes()),
                    Value::Text(text) => push_text(out, text),
                }
            }
        })?;
        self.result(|_| ())
    }

    pub(super) fn quit(&mut self) {
        // The server may have closed the connection before.
        let _ = self.command(QUIT, |_| ());
    }

    fn log_in(&mut self, address: &Address) -> Result<(), SqlError> {
        let length = self.answer()?;
        let packet = self.link.bytes()[..length].to_vec();
        self.link.used(length);
        let hello: HandshakePacket<'_> =
            ParseBuf(&packet).parse(()).map_err(|_| unexpected("the server's greeting"))?;
        let mut capabilities = wanted() & hello.capabilities();
        if !capabilities.contains(CapabilityFlags::CLIENT_PROTOCOL_41 | CapabilityFlags::CLIENT_PLUGIN_AUTH) {
            return Err(SqlError::Lost(
                "the server is older than MySQL 5.5; that is not spoken here".to_owned(),
            ));
        }
        self.no_eof = capabilities.contains(CapabilityFlags::CLIENT_DEPRECATE_EOF);
        // A server without this flag is MariaDB, which has its own capabilities elsewhere.
        let own = MariadbCapabilities::MARIADB_CLIENT_CACHE_METADATA & hello.mariadb_ext_capabilities();
        self.says_metadata =
            !own.is_empty() && !hello.capabilities().contains(CapabilityFlags::CLIENT_LONG_PASSWORD);
        if self.says_metadata {
            capabilities.remove(CapabilityFlags::CLIENT_LONG_PASSWORD);
        }
        if let Some(tls) = address.tls() {
            if !hello.capabilities().contains(CapabilityFlags::CLIENT_SSL) {
                return Err(SqlError::Unreachable(
                    "the server has no TLS: set ssl-cert and ssl-key there, or write ssl-mode=DISABLED"
                        .to_owned(),
                ));
            }
            capabilities |= CapabilityFlags::CLIENT_SSL;
            self.reply(&tls_request(capabilities, if self.says_metadata { own.bits() } else { 0 }))?;
            self.link.start_tls(&tls.client)?;
            // Otherwise the sequence follows from the packet before.
            self.sequence = self.sequence.wrapping_add(1);
        }
        let mut nonce = hello.scramble_1_ref().to_vec();
        nonce.extend_from_slice(hello.scramble_2_ref().unwrap_or_default());
        nonce.resize(20, 0);
        let plugin = match hello.auth_plugin() {
            Some(plugin @ AuthPlugin::CachingSha2Password) => plugin,
            _ => AuthPlugin::MysqlNativePassword,
        };
        let password = (!address.password.is_empty()).then_some(address.password.as_str());
        let secret = plugin.gen_data(password, &nonce).map(|data| data.into_owned());
        let response = HandshakeResponse::new(
            secret.as_deref(),
            hello.server_version_parsed().unwrap_or((5, 5, 3)),
            Some(address.user.as_bytes()),
            Some(address.database.as_bytes()),
            Some(plugin),
            capabilities,
            None,
            LONGEST as u32,
        );
        let response =
            if self.says_metadata { response.with_mariadb_ext_capabilities(own) } else { response };
        let mut bytes = Vec::new();
        response.serialize(&mut bytes);
        self.reply(&bytes)?;
        self.finish_login(address, nonce)
    }

    /// Finishes the login. The server may ask once for another authentication method.
    fn finish_login(&mut self, address: &Address, mut nonce: Vec<u8>) -> Result<(), SqlError> {
        let password = (!address.password.is_empty()).then_some(address.password.as_str());
        // OK, a switch, "continue", a key, OK: no known server sends more.
        for _ in 0..6 {
            let length = self.answer()?;
            let packet = self.link.bytes()[..length].to_vec();
            self.link.used(length);
            match packet.first() {
                Some(&OK) => return Ok(()),
                Some(&EOF) => {
                    let request: AuthSwitchRequest<'_> =
                        ParseBuf(&packet).parse(()).map_err(|_| unexpected("a request for another login"))?;
                    let plugin = request.auth_plugin();
                    nonce = request.plugin_data().to_vec();
                    if !matches!(plugin, AuthPlugin::CachingSha2Password | AuthPlugin::MysqlNativePassword) {
                        let name = String::from_utf8_lossy(plugin.as_bytes()).into_owned();
                        return Err(SqlError::Lost(format!(
                            "user `{}` logs in by `{name}`, which is not spoken here; give it a password: \
                             ALTER USER ... IDENTIFIED BY '...'",
                            address.user
                        )));
                    }
                    let secret = plugin.gen_data(password, &nonce).map(|data| data.into_owned());
                    self.reply(secret.as_deref().unwrap_or_default())?;
                }
                // caching_sha2_password: 3 means "known, OK follows", 4 asks for the password itself.
                Some(1) if packet.get(1) == Some(&3) => {}
                Some(1) if packet.get(1) == Some(&4) && self.link.has_tls() => {
                    let mut text = address.password.clone().into_bytes();
                    text.push(0);
                    self.reply(&text)?;
                }
                Some(1) if packet.get(1) == Some(&4) => self.reply(&[2])?,
                Some(1) => {
                    let secret = encrypted(&address.password, &nonce, &packet[1..]);
                    self.reply(&secret)?;
                }
                _ => return Err(unexpected("an answer to the login")),
            }
        }
        Err(unexpected("the end of the login"))
    }

    /// Sends a packet that continues an exchange.
    fn reply(&mut self, payload: &[u8]) -> Result<(), SqlError> {
        self.out.clear();
        self.out.extend_from_slice(&(payload.len() as u32).to_le_bytes()[..3]);
        self.out.push(self.sequence);
        self.out.extend_from_slice(payload);
        self.link.send(&self.out)
    }

    fn command(&mut self, command: u8, write: impl FnOnce(&mut Vec<u8>)) -> Result<(), SqlError> {
        self.out.clear();
        self.out.extend_from_slice(&[0, 0, 0, 0, command]);
        write(&mut self.out);
        let length = self.out.len() - 4;
        if length >= LONGEST {
            return Err(SqlError::Lost(format!(
                "a statement of {length} bytes is too long; 16 MiB are the most"
            )));
        }
        self.out[..3].copy_from_slice(&(length as u32).to_le_bytes()[..3]);
        self.link.send(&self.out)
    }

    /// Waits for a packet. Its payload is the first bytes of the link, of the returned number.
    #[inline]
    fn packet(&mut self) -> Result<usize, SqlError> {
        self.link.need(4)?;
        let header = self.link.bytes();
        let length = usize::from(header[0]) | usize::from(header[1]) << 8 | usize::from(header[2]) << 16;
        self.sequence = header[3].wrapping_add(1);
        if length == LONGEST {
            return Err(SqlError::Lost(
                "an answer has a row of 16 MiB or more; that is not read here".to_owned(),
            ));
        }
        self.link.used(4);
        self.link.need(length)?;
        Ok(length)
    }

    /// The same; an error packet or an empty packet is an error.
    #[inline]
    fn answer(&mut self) -> Result<usize, SqlError> {
        let length = self.packet()?;
        match self.link.bytes()[..length].first() {
            None => Err(unexpected("an empty packet")),
            Some(&ERROR) => {
                let error = refusal(&self.link.bytes()[..length]);
                self.link.used(length);
                Err(error)
            }
            Some(_) => Ok(length),
        }
    }

    fn result(&mut self, mut each: impl FnMut(&[u8])) -> Result<Effect, SqlError> {
        let length = self.answer()?;
        let packet = &self.link.bytes()[..length];
        if packet[0] == OK {
            let affected = number(&packet[1..]).map_or(0, |(affected, _)| affected);
            self.link.used(length);
            return Ok(Effect { rows: 0, affected });
        }
        let (columns, head) = number(packet).ok_or_else(|| unexpected("the head of a result"))?;
        let is_told = !self.says_metadata || packet.get(head) != Some(&0);
        self.link.used(length);
        let definitions = if is_told { columns } else { 0 };
        for _ in 0..definitions + u64::from(!self.no_eof) {
            let length = self.packet()?;
            self.link.used(length);
        }
        let mut rows = 0;
        loop {
            let length = self.answer()?;
            let packet = &self.link.bytes()[..length];
            // Only a row whose first column has 16 MiB can start like this.
            if packet[0] == EOF {
                self.link.used(length);
                return Ok(Effect { rows, affected: 0 });
            }
            rows += 1;
            each(packet);
            self.link.used(length);
        }
    }
}

/// The password encrypted with the server's RSA key, as caching_sha2_password requires over a plain connection.
fn encrypted(password: &str, nonce: &[u8], key: &[u8]) -> Vec<u8> {
    let mut secret = password.as_bytes().to_vec();
    secret.push(0);
    secret.iter_mut().zip(nonce.iter().cycle()).for_each(|(byte, pad)| *byte ^= pad);
    mysql_common::crypto::encrypt(&secret, key)
}
