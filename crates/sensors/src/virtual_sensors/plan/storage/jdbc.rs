//! JDBC URLs and driver names of databases.

use std::fmt;

/// A kind of database that this server has a client for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DatabaseKind {
    /// MySQL or MariaDB.
    MySql,
    PostgreSql,
}

/// Where a database is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DatabaseAddress {
    pub kind: DatabaseKind,
    /// The name or the address of the server, without brackets.
    pub host: String,
    pub port: u16,
    /// The name of the database.
    pub database: String,
}

/// A database of a JDBC URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JdbcUrl {
    /// A server that this server has a client for. The list names the parameters of the URL, which have no effect.
    Server(DatabaseAddress, Vec<String>),
    /// A database that Java keeps in its own process or files, such as H2. The store of this server replaces it.
    Embedded,
}

const MYSQL_PORT: u16 = 3306;
const POSTGRESQL_PORT: u16 = 5432;
/// Databases inside of a process of Java.
const EMBEDDED: [&str; 4] = ["h2", "hsqldb", "derby", "sqlite"];
/// Parameters that ask for an encrypted connection.
const ENCRYPTION: [&str; 4] = ["usessl", "requiressl", "sslmode", "ssl"];

impl DatabaseKind {
    /// The name for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::MySql => "MySQL",
            Self::PostgreSql => "PostgreSQL",
        }
    }
}

impl fmt::Display for DatabaseAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, host, port, database } = self;
        match host.contains(':') {
            true => write!(f, "{} [{host}]:{port}/{database}", kind.name()),
            false => write!(f, "{} {host}:{port}/{database}", kind.name()),
        }
    }
}

impl JdbcUrl {
    /// Reads a URL such as `jdbc:mysql://host:3306/gsn`.
    ///
    /// # Errors
    /// The URL names no database that this server has a client for; the text states what to use instead.
    pub fn parse(url: &str) -> Result<Self, String> {
        let Some(rest) = strip_prefix(url, "jdbc:") else {
            return Err("the url does not begin with jdbc:, as in jdbc:mysql://host:3306/gsn".to_owned());
        };
        let (scheme, rest) = rest.split_once(':').unwrap_or((rest, ""));
        let kind = match scheme.to_ascii_lowercase().as_str() {
            "mysql" | "mariadb" => DatabaseKind::MySql,
            "postgresql" => DatabaseKind::PostgreSql,
            embedded if EMBEDDED.contains(&embedded) => return Ok(Self::Embedded),
            other => {
                return Err(format!(
                    "this server has no client for the database {other:?}; use jdbc:mysql, jdbc:mariadb or jdbc:postgresql, or leave \
                     the storage out: the output is then in the store of this server"
                ));
            }
        };
        let bad =
            || format!("the url names no server and database; it is jdbc:{scheme}://host:port/database");
        let rest = rest.strip_prefix("//").ok_or_else(bad)?;
        let (place, parameters) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, database) = place.split_once('/').ok_or_else(bad)?;
        let (host, port) = authority_of(authority, kind).ok_or_else(bad)?;
        if host.is_empty() || database.is_empty() || database.contains(['/', ';']) {
            return Err(bad());
        }
        let address = DatabaseAddress { kind, host, port, database: database.to_owned() };
        Ok(Self::Server(address, unused(parameters)?))
    }
}

/// Checks that a driver of Java is that of the kind of a database.
///
/// # Errors
/// It is another one; the text states which is expected.
pub fn check_driver(driver: &str, kind: DatabaseKind) -> Result<(), String> {
    let known: &[&str] = match kind {
        DatabaseKind::MySql => {
            &["com.mysql.jdbc.Driver", "com.mysql.cj.jdbc.Driver", "org.mariadb.jdbc.Driver"]
        }
        DatabaseKind::PostgreSql => &["org.postgresql.Driver"],
    };
    match known.contains(&driver) {
        true => Ok(()),
        false => {
            Err(format!("the driver {driver:?} is not one of {}; use {}", kind.name(), known.join(" or ")))
        }
    }
}

fn authority_of(authority: &str, kind: DatabaseKind) -> Option<(String, u16)> {
    if authority.contains([',', '@']) {
        return None;
    }
    let default = match kind {
        DatabaseKind::MySql => MYSQL_PORT,
        DatabaseKind::PostgreSql => POSTGRESQL_PORT,
    };
    if let Some(rest) = authority.strip_prefix('[') {
        let (host, port) = rest.split_once(']')?;
        let port = if port.is_empty() { default } else { port.strip_prefix(':')?.parse().ok()? };
        return Some((host.to_owned(), port));
    }
    match authority.split_once(':') {
        Some((host, port)) => Some((host.to_owned(), port.parse().ok().filter(|port| *port > 0)?)),
        None => Some((authority.to_owned(), default)),
    }
}

/// The names of the parameters, which have no effect.
fn unused(parameters: &str) -> Result<Vec<String>, String> {
    let mut names = Vec::new();
    for parameter in parameters.split(['&', ';']).filter(|parameter| !parameter.is_empty()) {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        let lower = name.to_ascii_lowercase();
        if matches!(lower.as_str(), "user" | "password") {
            return Err(
                "the url has a user or a password; give them as the words user and password".to_owned()
            );
        }
        let is_off = matches!(value.to_ascii_lowercase().as_str(), "false" | "disable" | "disabled");
        if ENCRYPTION.contains(&lower.as_str()) && !is_off {
            return Err(format!(
                "the url asks for an encrypted connection ({name}), which this client does not have; use a tunnel, and {name}=false"
            ));
        }
        names.push(name.to_owned());
    }
    Ok(names)
}

fn strip_prefix<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let head = text.get(..prefix.len())?;
    head.eq_ignore_ascii_case(prefix).then(|| &text[prefix.len()..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(url: &str) -> (String, Vec<String>) {
        match JdbcUrl::parse(url) {
            Ok(JdbcUrl::Server(address, unused)) => (address.to_string(), unused),
            other => panic!("{url}: {other:?}"),
        }
    }

    #[test]
    fn urls_name_a_server_and_a_database() {
        assert_eq!(server("jdbc:mysql://localhost/gsn").0, "MySQL localhost:3306/gsn");
        assert_eq!(server("JDBC:mariadb://db.example.org:3307/gsn").0, "MySQL db.example.org:3307/gsn");
        assert_eq!(server("jdbc:postgresql://[::1]:5433/gsn").0, "PostgreSQL [::1]:5433/gsn");
        assert_eq!(server("jdbc:postgresql://h/gsn").0, "PostgreSQL h:5432/gsn");
        let (_, unused) = server("jdbc:mysql://h/gsn?useUnicode=true&useSSL=false");
        assert_eq!(unused, ["useUnicode", "useSSL"]);
        assert_eq!(JdbcUrl::parse("jdbc:h2:mem:gsn;DB_CLOSE_DELAY=-1"), Ok(JdbcUrl::Embedded));
    }

    #[test]
    fn other_urls_are_refused_with_what_to_use() {
        for (url, expected) in [
            ("mysql://h/gsn", "does not begin with jdbc:"),
            ("jdbc:oracle:thin:@h:1521:gsn", "no client for the database \"oracle\"; use jdbc:mysql"),
            ("jdbc:jtds:sqlserver://h/gsn", "no client for the database \"jtds\""),
            ("jdbc:mysql:h/gsn", "it is jdbc:mysql://host:port/database"),
            ("jdbc:mysql://h", "it is jdbc:mysql://host:port/database"),
            ("jdbc:mysql:///gsn", "it is jdbc:mysql://host:port/database"),
            ("jdbc:mysql://h:99999/gsn", "it is jdbc:mysql://host:port/database"),
            ("jdbc:mysql://h1,h2/gsn", "it is jdbc:mysql://host:port/database"),
            ("jdbc:mysql://h/gsn?user=root", "give them as the words user and password"),
            ("jdbc:postgresql://h/gsn?sslmode=require", "asks for an encrypted connection (sslmode)"),
            ("", "does not begin with jdbc:"),
        ] {
            let refused = JdbcUrl::parse(url).expect_err(url);
            assert!(refused.contains(expected), "{url}: {refused}");
        }
    }

    #[test]
    fn a_driver_is_that_of_its_database() {
        assert_eq!(check_driver("com.mysql.jdbc.Driver", DatabaseKind::MySql), Ok(()));
        assert_eq!(check_driver("org.postgresql.Driver", DatabaseKind::PostgreSql), Ok(()));
        let refused = check_driver("org.h2.Driver", DatabaseKind::MySql).expect_err("another driver");
        assert!(refused.contains("use com.mysql.jdbc.Driver"), "{refused}");
    }
}
