//! Target URLs: `scheme://user:password@host:port/path?name=value`. Only this module parses them. A [`Form`] defines
//! which parts a driver accepts; others are refused by name, never ignored. No message quotes text that may be a
//! password.

mod form;
mod tls;

use std::net::{SocketAddr, ToSocketAddrs as _};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::passwords;
use crate::tls::{TlsClient, TlsConfig, TlsError, TlsOptions};
pub use form::{ASKED, ES, Form, HBASE, HTTP, LoginForm, MQTT, MYSQL, POSTGRES, PathForm, REDIS, TCP};
use form::{Parsed, TlsForm};

/// A parsed and decoded URL.
#[derive(Clone, PartialEq, Eq)]
pub struct TargetUrl {
    /// The scheme.
    pub scheme: String,
    /// The user, if the URL has one.
    pub user: Option<String>,
    /// The password, if the URL has one.
    pub password: Option<String>,
    /// The host, without the brackets of IPv6.
    pub host: String,
    /// The port, if the URL has one.
    port: Option<u16>,
    default_port: u16,
    /// The path, without the first `/`.
    pub path: String,
    parameters: Vec<(String, String)>,
    /// The options of TLS; `None` without TLS.
    tls: Option<TlsOptions>,
}

/// The host of a URL has no address. The text says what to look at.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unresolved(String);

/// Keeps the password out of logs and results.
impl std::fmt::Debug for TargetUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}://{}/{}", self.scheme, self.host_port(), self.path)
    }
}

impl TargetUrl {
    /// Parses a URL according to `form`. The error says what is wrong and how to write it.
    pub fn parse(url: &str, form: &Form) -> Parsed<Self> {
        Self::read(url, form).map_err(|what| format!("{what}; write {}", form.example))
    }

    fn read(url: &str, form: &Form) -> Parsed<Self> {
        let (scheme, default_port, rest) = scheme(url, form)?;
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, tail) = rest.split_at(end);
        if tail.contains('@') {
            return Err(
                "a `/`, `?`, `#` or `@` of a user, password or path is written %2F, %3F, %23, %40".to_owned()
            );
        }
        let (login, host_port) = match authority.rsplit_once('@') {
            Some((login, host_port)) => (Some(login), host_port),
            None => (None, authority),
        };
        let (user, password) = login.map_or(Ok((None, None)), |login| credentials(login, form.login))?;
        let (host, port) = host_and_port(host_port, form.default_host)?;
        if tail.contains('#') {
            return Err("a `#` has no meaning in it".to_owned());
        }
        let (path, query) = tail.split_once('?').map_or((tail, None), |(path, query)| (path, Some(query)));
        let path = path_of(path, form.path)?;
        let parameters = query.map_or(Ok(Vec::new()), |query| parameters(query, form))?;
        Ok(Self {
            tls: tls::options(&scheme, &parameters, form)?,
            scheme,
            user,
            password,
            host,
            port,
            default_port,
            path,
            parameters,
        })
    }

    /// The port; the default of the scheme if the URL has none.
    pub fn port(&self) -> u16 {
        self.port.unwrap_or(self.default_port)
    }

    /// Host and port for a header `Host`, as in the URL.
    pub fn host_port(&self) -> String {
        let host = self.host_name();
        self.port.map_or_else(|| host.clone(), |port| format!("{host}:{port}"))
    }

    /// The host for a URL: an IPv6 address in brackets.
    pub fn host_name(&self) -> String {
        if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() }
    }

    /// The parameters of this URL for another one with the same TLS, with `?`; `None` without TLS.
    pub fn tls_query(&self) -> Option<String> {
        self.tls.as_ref()?;
        let pairs: Vec<String> =
            self.parameters.iter().map(|(name, value)| format!("{name}={}", encoded(value))).collect();
        Some(if pairs.is_empty() { String::new() } else { format!("?{}", pairs.join("&")) })
    }

    /// Host and port, with the default port if the URL has none.
    pub fn authority(&self) -> String {
        match self.port {
            Some(_) => self.host_port(),
            None => format!("{}:{}", self.host_port(), self.default_port),
        }
    }

    /// The password of the URL, or that of the environment.
    pub fn password(&self) -> Option<String> {
        self.password.clone().or_else(passwords::target)
    }

    /// User and password as the value of the header `Authorization`; `None` without a user.
    pub fn basic_login(&self) -> Option<String> {
        let password = self.password();
        let user = self.user.as_deref()?;
        Some(format!("Basic {}", STANDARD.encode(format!("{user}:{}", password.unwrap_or_default()))))
    }

    /// The value of a parameter of the form.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The options of TLS; `None` without TLS.
    pub fn tls_options(&self) -> Option<&TlsOptions> {
        self.tls.as_ref()
    }

    /// What a result says about TLS: how the server's certificate was checked.
    pub fn verification(&self) -> Option<String> {
        self.tls.as_ref().map(TlsOptions::verification)
    }

    /// The configuration of TLS, read from its files; `None` without TLS.
    pub fn tls_config(&self) -> Result<Option<TlsConfig>, TlsError> {
        self.tls.as_ref().map(TlsConfig::load).transpose()
    }

    /// The client of TLS for this server; `None` without TLS.
    pub fn tls_client(&self) -> Result<Option<TlsClient>, TlsError> {
        let config = self.tls_config()?;
        config.map(|config| config.client(&self.host)).transpose()
    }

    /// Scheme, host, port and path, without login and parameters.
    pub fn base(&self) -> String {
        format!("{}://{}/{}", self.scheme, self.host_port(), self.path)
    }

    /// The first address of the host.
    pub fn resolve(&self) -> Result<SocketAddr, Unresolved> {
        let all = addresses(&self.host, self.port()).map_err(Unresolved)?;
        Ok(*all.first().expect("BUG: a host without an address is an error"))
    }
}

/// All socket addresses of a host, at least one.
pub fn addresses(host: &str, port: u16) -> Parsed<Vec<SocketAddr>> {
    let failed = |cause: &dyn std::fmt::Display| {
        format!(
            "the target `{host}:{port}` cannot be resolved: {cause}. Look at the name, at /etc/hosts and at the name server"
        )
    };
    let found: Vec<SocketAddr> = (host, port).to_socket_addrs().map_err(|error| failed(&error))?.collect();
    if found.is_empty() { Err(failed(&"it has no address")) } else { Ok(found) }
}

/// A URL that may be published. URLs that [`TargetUrl::parse`] accepts contain no password here; in others everything
/// up to the last `@` may be part of one.
pub fn without_password(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").map_or((None, url), |(scheme, rest)| (Some(scheme), rest));
    let rest = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
    scheme.map_or_else(|| rest.to_owned(), |scheme| format!("{scheme}://{rest}"))
}

/// A name, encoded for a URL; [`TargetUrl::parse`] decodes it.
pub fn encoded(name: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let of = |byte: u8| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    name.bytes().map(of).collect()
}

fn scheme<'a>(url: &'a str, form: &Form) -> Parsed<(String, u16, &'a str)> {
    let spoken = || {
        let tls_schemes = if let TlsForm::Schemes(schemes, _) = &form.tls { *schemes } else { &[] };
        let names: Vec<&str> = form.schemes.iter().chain(tls_schemes).map(|(name, _)| *name).collect();
        names.join(", ")
    };
    let Some((scheme, rest)) = url.split_once("://") else {
        let (name, port) = form.schemes[0];
        return if form.has_default_scheme {
            Ok((name.to_owned(), port, url))
        } else {
            Err("the address is not a URL".to_owned())
        };
    };
    let scheme = scheme.to_ascii_lowercase();
    let tls_schemes = match &form.tls {
        TlsForm::Schemes(schemes, _) => *schemes,
        TlsForm::None { schemes, why } if schemes.contains(&scheme.as_str()) => {
            return Err(format!("`{scheme}://`: this driver speaks no TLS; {why}"));
        }
        TlsForm::None { .. } | TlsForm::Modes { .. } => &[],
    };
    let known = form.schemes.iter().chain(tls_schemes).find(|(name, _)| *name == scheme);
    known.map(|(_, port)| (scheme.clone(), *port, rest)).ok_or_else(|| match is_word(&scheme) {
        true => format!("`{scheme}://`: this driver speaks {}", spoken()),
        false => format!("what is before `://` is not a scheme; this driver speaks {}", spoken()),
    })
}

fn is_word(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= 20
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "+.-".contains(c))
}

fn credentials(login: &str, form: LoginForm) -> Parsed<(Option<String>, Option<String>)> {
    let (user, password) = match (form, login.split_once(':')) {
        (LoginForm::Refused(why), _) => return Err(format!("user and password are not taken here: {why}")),
        (_, Some((user, password))) => (user, Some(password)),
        (LoginForm::User, None) => (login, None),
        (LoginForm::Password, None) => ("", Some(login)),
    };
    let user = decoded(user, "the user")?;
    let password = password.map(|password| decoded(password, "the password")).transpose()?;
    if user.is_empty() && form == LoginForm::User && password.is_some() {
        return Err("a user goes before the password".to_owned());
    }
    Ok(((!user.is_empty()).then_some(user), password))
}

/// Parses host and port. No message quotes text that may be part of a password.
fn host_and_port(text: &str, default_host: Option<&str>) -> Parsed<(String, Option<u16>)> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, after) = rest.split_once(']').ok_or("the `[` of an IPv6 address is not closed")?;
            if host.parse::<std::net::Ipv6Addr>().is_err() {
                return Err("what is between `[` and `]` is not an IPv6 address".to_owned());
            }
            match after.strip_prefix(':') {
                None if !after.is_empty() => return Err("only a port can follow `]`".to_owned()),
                port => (host, port),
            }
        }
        None if text.matches(':').count() > 1 => {
            return Err(
                "an IPv6 address is between `[` and `]`, and a `:` of a password is written %3A".to_owned()
            );
        }
        None => text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port))),
    };
    let port = port.map(|port| match port.parse::<u16>() {
        Ok(number) if number > 0 => Ok(number),
        _ => Err("the port is not a number from 1 to 65535".to_owned()),
    });
    let host = match (host, default_host) {
        ("", Some(host)) => host,
        ("", None) => return Err("it names no host".to_owned()),
        (host, _) => host,
    };
    if host.contains(',') {
        return Err("it names several hosts; a target is one".to_owned());
    }
    if !host.chars().all(|c| c.is_alphanumeric() || "-_.:".contains(c)) {
        return Err(
            "the host has a character that no host name has (a directory of Unix sockets is not a host)"
                .to_owned(),
        );
    }
    Ok((host.to_owned(), port.transpose()?))
}

fn path_of(path: &str, form: PathForm) -> Parsed<String> {
    let path = path.strip_prefix('/').unwrap_or(path);
    match form {
        _ if path.is_empty() => Ok(String::new()),
        PathForm::Refused(why) => Err(format!("`/{path}`: {why}")),
        PathForm::Base if path.chars().any(|c| c.is_whitespace() || c.is_control()) => {
            Err(format!("`/{path}`: a blank of a path is written %20"))
        }
        PathForm::Base => Ok(path.to_owned()),
        PathForm::Name(what) if path.contains('/') => {
            Err(format!("`/{path}` is not a {what}: a `/` of it is written %2F"))
        }
        PathForm::Name(what) => decoded(path, &format!("the {what}")),
    }
}

fn parameters(query: &str, form: &Form) -> Parsed<Vec<(String, String)>> {
    let mut all: Vec<(String, String)> = Vec::new();
    for part in query.split('&').filter(|part| !part.is_empty()) {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        let name = decoded(name, "a parameter")?.to_ascii_lowercase();
        let mut value = decoded(value, "a parameter")?;
        if !tls::has_parameter(form, &name) {
            value = value.to_ascii_lowercase();
            let known = form.parameters.iter().find(|(known, _)| *known == name);
            let Some((_, obeyed)) = known else { return Err(refusal(&name, form)) };
            if !obeyed.contains(&value.as_str()) {
                return Err(format!("`{name}={value}`: {name} can be {}", obeyed.join(" or ")));
            }
        }
        if all.iter().any(|(known, _)| *known == name) {
            return Err(format!("`{name}` is given twice"));
        }
        all.push((name, value));
    }
    Ok(all)
}

fn refusal(name: &str, form: &Form) -> String {
    if let Some((_, why)) = form.refused.iter().find(|(refused, _)| *refused == name) {
        return format!("parameter `{name}`: {why}");
    }
    let mut known: Vec<&str> = form.parameters.iter().map(|(name, _)| *name).collect();
    known.extend(tls::parameter_names(form));
    let known = if known.is_empty() { "none is".to_owned() } else { format!("only {}", known.join(", ")) };
    format!("parameter `{name}` is not known here, {known}")
}

/// Decodes `%41` as A. The error quotes nothing, because the text may be a password.
fn decoded(text: &str, what: &str) -> Parsed<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || char::from(rest.next()?).to_digit(16);
        let value = digit().zip(digit()).map(|(high, low)| high * 16 + low);
        let value = value.ok_or_else(|| {
            format!("a % of {what} is not followed by two hexadecimal digits; a % itself is written %25")
        })?;
        bytes.push(value as u8);
    }
    let text =
        String::from_utf8(bytes).map_err(|_| format!("{what} is not UTF-8 after its % are decoded"))?;
    match text.chars().any(char::is_control) {
        true => Err(format!("{what} has a control character")),
        false => Ok(text),
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::tls::Trust;
    use proptest::prelude::*;

    const ALL: [&Form; 8] = [&REDIS, &HTTP, &ES, &TCP, &MQTT, &MYSQL, &POSTGRES, &ASKED];

    #[test]
    fn urls_are_taken_apart_and_decoded() {
        let url = |text| TargetUrl::parse(text, &REDIS).unwrap();
        let full = url("redis://me:s3%3Acr%2F%25et@host:7000/2?resp=3");
        assert_eq!((full.user.as_deref(), full.password.as_deref()), (Some("me"), Some("s3:cr/%et")));
        assert_eq!(
            (full.host_port().as_str(), full.path.as_str(), full.parameter("resp")),
            ("host:7000", "2", Some("3"))
        );
        assert_eq!(url("redis://:pw@h").password, url("redis://pw@h").password);
        assert_eq!(url("redis://me:a:b@h").password.as_deref(), Some("a:b"), "the first `:` ends the user");
        assert_eq!(url("redis://me:a@b@h").password.as_deref(), Some("a@b"), "the last `@` begins the host");
        assert_eq!(url("127.0.0.1:1").host_port(), "127.0.0.1:1");
        assert_eq!(url("REDIS://h/").scheme, "redis");
        assert_eq!(url("redis://127.0.0.1").resolve().unwrap().port(), 6_379);
        let six = url("redis://[::1]:5");
        assert_eq!(
            (six.resolve().unwrap().to_string().as_str(), six.host_port().as_str()),
            ("[::1]:5", "[::1]:5")
        );
        let http = TargetUrl::parse("http://me@host/a%20b/", &HTTP).unwrap();
        assert_eq!(
            (http.user.as_deref(), http.password.as_deref(), http.path.as_str()),
            (Some("me"), None, "a%20b/")
        );
        let sql = TargetUrl::parse("postgresql://?sslmode=Disable", &POSTGRES).unwrap();
        assert_eq!((sql.host.as_str(), sql.port(), sql.path.as_str()), ("127.0.0.1", 5_432, ""));
        let error = url("redis://no-such-host.invalid").resolve().unwrap_err().to_string();
        assert!(error.contains("no-such-host.invalid:6379` cannot be resolved"), "{error}");
    }

    #[test]
    fn what_a_driver_does_not_take_is_refused_by_name() {
        for (url, form, expected) in [
            ("http://x", &REDIS, "this driver speaks redis, valkey, tcp, rediss, valkeys"),
            ("https://h/", &TCP, "`https://`: this driver speaks no TLS; driver tcp measures"),
            ("hbases://h/", &HBASE, "`hbases://`: this driver speaks no TLS"),
            ("wss://h/mqtt", &MQTT, "`wss://`: this driver speaks mqtt, tcp, mqtts"),
            ("mqtt://h?cafile=/ca.pem", &MQTT, "`cafile` is for TLS: write mqtts://"),
            ("redis://h?insecure=true", &REDIS, "`insecure` is for TLS: write rediss://"),
            ("mqtts://h?insecure=yes", &MQTT, "`insecure=yes`: insecure can be true or false"),
            ("mqtts://h?insecure=true&cafile=/ca.pem", &MQTT, "verifies nothing: leave out `cafile`"),
            ("https://h?cert=/c.pem", &HTTP, "`cert` and `key` belong together"),
            (
                "https://h?sslmode=require",
                &HTTP,
                "`sslmode` is not known here, only cafile, cert, key, insecure",
            ),
            ("mqtts://h?cafile=/a&cafile=/b", &MQTT, "`cafile` is given twice"),
            ("hbase://h?cafile=/a", &HBASE, "`cafile` is not known here"),
            ("redis://h/5?db=3", &REDIS, "the database number follows the host"),
            ("redis://h/?resp=4", &REDIS, "`resp=4`: resp can be 2 or 3"),
            ("redis://h/?resp=2&resp=3", &REDIS, "`resp` is given twice"),
            ("redis://h/1/2", &REDIS, "is not a database number"),
            ("redis://h:0", &REDIS, "1 to 65535"),
            ("redis://h:65536", &REDIS, "1 to 65535"),
            ("redis://h:", &REDIS, "1 to 65535"),
            ("redis://::1", &REDIS, "between `[` and `]`"),
            ("redis://[::1", &REDIS, "not closed"),
            ("redis://[::1]6379", &REDIS, "only a port can follow"),
            ("redis://", &REDIS, "names no host"),
            ("redis://a b", &REDIS, "no host name has"),
            ("redis://h#1", &REDIS, "`#` has no meaning"),
            ("http://h/x?q=1", &HTTP, "parameter `q` is not known here, only cafile, cert, key, insecure"),
            ("http://:pw@h/", &HTTP, "a user goes before the password"),
            ("http://h/a b", &HTTP, "%20"),
            ("http://h/x", &TCP, "belongs into the phase"),
            ("http://u:p@h", &TCP, "does not log in"),
            ("mqtt://u:p@h", &MQTT, "token_prefix"),
            ("mqtt://h/topic", &MQTT, "MQTT has no path"),
            (
                "postgres://h/d?sslmode=prefer",
                &POSTGRES,
                "`sslmode=prefer`: sslmode can be disable or require or verify-ca or verify-full",
            ),
            ("postgres://h/d?sslmode=require&sslrootcert=/ca.pem", &POSTGRES, "`sslrootcert` is not used"),
            ("postgres://h/d?sslcert=/c.pem", &POSTGRES, "`sslcert` is for TLS: give a mode"),
            ("postgres:///d?host=/run/postgresql", &POSTGRES, "not over a Unix socket"),
            ("postgres://%2Frun%2Fpostgresql/d", &POSTGRES, "no host name has"),
            ("postgres://a,b/d", &POSTGRES, "several hosts"),
            (
                "postgres://h/d?application_name=x",
                &POSTGRES,
                "`application_name` is not known here, only sslmode",
            ),
            ("mysql://h/d?socket=/run/mysqld/s", &MYSQL, "not over a Unix socket"),
            ("mysql://h/d?ssl-mode=PREFERRED", &MYSQL, "`ssl-mode=PREFERRED`: ssl-mode can be DISABLED"),
            ("mysql://h/d?charset=utf8mb4", &MYSQL, "`charset` is not known here"),
            ("localhost", &MYSQL, "not a URL"),
            ("http://u:p@h/status", &ASKED, "cannot have a user and password"),
        ] {
            let error = TargetUrl::parse(url, form).unwrap_err();
            assert!(error.contains(expected) && error.ends_with(form.example), "{url}: {error}");
        }
    }

    #[test]
    fn addresses_with_tls_say_what_is_trusted() {
        let trust = |text: &str, form: &Form| {
            let url = TargetUrl::parse(text, form).unwrap();
            url.tls_options().map(|options| options.trust.clone())
        };
        let file = || PathBuf::from("/etc/CA one.pem");
        assert_eq!(trust("mqtt://h", &MQTT), None);
        assert_eq!(trust("mqtts://h", &MQTT), Some(Trust::System));
        assert_eq!(trust("https://h?cafile=/etc/CA%20one.pem", &HTTP), Some(Trust::File(file())));
        assert_eq!(trust("rediss://h?insecure=true&resp=3", &REDIS), Some(Trust::Everything));
        assert_eq!(trust("rediss://h?insecure=false", &REDIS), Some(Trust::System));
        assert_eq!(trust("mysql://h/d?ssl-mode=Disabled", &MYSQL), None);
        assert_eq!(trust("mysql://h/d?ssl-mode=required", &MYSQL), Some(Trust::Everything));
        let mysql = trust("mysql://h/d?ssl-mode=VERIFY_CA&ssl-ca=/etc/CA%20one.pem", &MYSQL);
        assert_eq!(mysql, Some(Trust::AnyName(Some(file()))));
        let postgres = trust("postgres://h/d?sslmode=verify-full&sslrootcert=/etc/CA%20one.pem", &POSTGRES);
        assert_eq!(postgres, Some(Trust::File(file())));

        let url = TargetUrl::parse("mqtts://h?cafile=/CA%20one&cert=/c&key=/k", &MQTT).unwrap();
        assert_eq!(
            (url.port(), url.tls_query().as_deref()),
            (8_883, Some("?cafile=%2FCA%20one&cert=%2Fc&key=%2Fk"))
        );
        let identity = url.tls_options().unwrap().identity.as_ref().unwrap();
        assert_eq!((identity.certificate.to_str(), identity.key.to_str()), (Some("/c"), Some("/k")));
        let again = format!("https://h/{}", url.tls_query().unwrap());
        let again = TargetUrl::parse(&again, &ASKED).unwrap();
        assert_eq!(again.tls_options(), url.tls_options());
        assert_eq!(again.base(), "https://h/");
    }

    #[test]
    fn no_message_has_a_password() {
        for url in [
            "redis://me:s3cret/x@h",
            "redis://me:s3cret#x@h",
            "redis://me:s3cret?x@h",
            "redis://me:s3cret%@h",
            "redis://me:s3cret%zz@h",
            "redis://:s3cret",
            "redis://me:s3cret",
            "redis://me:s3cret%00@h",
            "redis://s3cret://h",
            "redis://h/?password=s3cret",
            "redis://[s3cret]@h:x",
            "redis://me:x%ffs3cret@h",
            "me:s3cret://h",
        ] {
            for form in ALL {
                let error = TargetUrl::parse(url, form).unwrap_err();
                assert!(!error.contains("s3cret"), "{error}");
            }
        }
        let url = TargetUrl::parse("redis://me:s3cret@h", &REDIS).unwrap();
        assert!(!format!("{url:?}").contains("s3cret"));
        assert_eq!(without_password("redis://me:pw@host:1/2"), "redis://host:1/2");
    }

    proptest! {
        #[test]
        fn any_password_and_any_name_comes_back(password in "[^\\p{C}]{1,20}", user in "[^\\p{C}]{1,20}") {
            let text = format!("mysql://{}:{}@h/{}", encoded(&user), encoded(&password), encoded(&user));
            let url = TargetUrl::parse(&text, &MYSQL).unwrap();
            prop_assert_eq!((url.user.as_deref(), url.password.as_deref(), url.path.as_str()), (Some(&*user), Some(&*password), &*user));
        }

        #[test]
        fn any_text_is_read_or_refused(text in "(redis://|mysql://|http://)?[a-z0-9:/@\\[\\]%?#=&., é-]{0,40}") {
            for form in ALL {
                if let Ok(url) = TargetUrl::parse(&text, form) {
                    prop_assert!(url.port() > 0 && !url.host.is_empty());
                    if let Some(password) = url.password.filter(|password| password.len() > 3) {
                        let written = format!(":{password}@");
                        prop_assert!(!without_password(&text).contains(&written));
                    }
                }
            }
        }
    }
}
