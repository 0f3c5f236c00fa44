//! The URL forms of the drivers. A new driver needs another [`Form`] here.

/// A part of a URL, or what is wrong with it and how to write it.
pub(super) type Parsed<T> = std::result::Result<T, String>;

/// The parts of a URL that a driver accepts.
#[derive(Debug)]
pub struct Form {
    /// An example for messages.
    pub example: &'static str,
    /// The schemes with their ports, the usual one first.
    pub schemes: &'static [(&'static str, u16)],
    /// How a URL asks for TLS.
    pub tls: TlsForm,
    /// Whether a URL without a scheme gets the first one.
    pub has_default_scheme: bool,
    /// The host of a URL without one; `None` if it is required.
    pub default_host: Option<&'static str>,
    /// User and password.
    pub login: LoginForm,
    /// The part after the host.
    pub path: PathForm,
    /// The parameters after `?`: the names with the supported values.
    pub parameters: &'static [(&'static str, &'static [&'static str])],
    /// Known parameters that are refused, with the reason.
    pub refused: &'static [(&'static str, &'static str)],
}

/// How a URL asks for TLS.
#[derive(Debug)]
pub enum TlsForm {
    /// By one of these schemes, with their ports, the usual one first.
    Schemes(&'static [(&'static str, u16)], FileNames),
    /// By a parameter with one of these names, as in the clients of the product.
    Modes {
        /// The names of the parameter.
        names: &'static [&'static str],
        /// Its values.
        modes: &'static [(&'static str, TlsMode)],
        /// The files.
        files: FileNames,
    },
    /// Not at all.
    None {
        /// The schemes that would mean it.
        schemes: &'static [&'static str],
        /// What to do instead.
        why: &'static str,
    },
}

/// The names of the parameters that name files.
#[derive(Debug)]
pub struct FileNames {
    /// The authorities that the client trusts.
    pub(super) authority: &'static str,
    /// The certificate of the client.
    pub(super) certificate: &'static str,
    /// Its key.
    pub(super) key: &'static str,
}

impl FileNames {
    pub(super) fn all(&self) -> [&'static str; 3] {
        [self.authority, self.certificate, self.key]
    }
}

/// What a mode of MySQL or PostgreSQL means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TlsMode {
    /// No TLS.
    Off,
    /// TLS with any certificate.
    Unverified,
    /// A certificate of a trusted authority for any name.
    AnyName,
    /// A certificate of a trusted authority for the name of the server.
    Full,
}

/// The part before `@`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoginForm {
    /// `user:password`; a single word is the user.
    User,
    /// `user:password`; a single word is the password, as in redis-cli.
    Password,
    /// Not accepted; the text says what to write instead.
    Refused(&'static str),
}

/// The part after the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathForm {
    /// A single decoded name; messages call it so.
    Name(&'static str),
    /// A path that stays encoded and becomes the prefix of the operations' paths.
    Base,
    /// Not accepted; the text says what to write instead.
    Refused(&'static str),
}

const FILES: FileNames = FileNames { authority: "cafile", certificate: "cert", key: "key" };
const NO_SOCKET: &str = "this driver connects over TCP, not over a Unix socket";
const PASSWORD_PLACE: &str = "a password is before the host (user:password@host) or in TACHO_TARGET_PASSWORD";

/// Driver `redis`.
pub const REDIS: Form = Form {
    example: "redis://user:password@host:6379/database",
    schemes: &[("redis", 6_379), ("valkey", 6_379), ("tcp", 6_379)],
    tls: TlsForm::Schemes(&[("rediss", 6_379), ("valkeys", 6_379)], FILES),
    has_default_scheme: true,
    default_host: None,
    login: LoginForm::Password,
    path: PathForm::Name("database number"),
    parameters: &[("resp", &["2", "3"])],
    refused: &[
        ("protocol", "write resp=2 or resp=3"),
        ("db", "the database number follows the host: redis://host/5"),
        ("password", PASSWORD_PLACE),
        ("ssl", "TLS has a scheme of its own: rediss://"),
    ],
};

/// Driver `http`.
pub const HTTP: Form = Form {
    example: "http://user:password@host:80/path",
    schemes: &[("http", 80)],
    tls: TlsForm::Schemes(&[("https", 443)], FILES),
    has_default_scheme: true,
    default_host: None,
    login: LoginForm::User,
    path: PathForm::Base,
    parameters: &[],
    refused: &[],
};

/// Driver `es`.
pub const ES: Form = Form {
    example: "http://user:password@host:9200/index",
    schemes: &[("http", 9_200)],
    tls: TlsForm::Schemes(&[("https", 9_200)], FILES),
    has_default_scheme: true,
    default_host: None,
    login: LoginForm::User,
    path: PathForm::Name("index"),
    parameters: &[],
    refused: &[],
};

/// Driver `tcp`.
pub const TCP: Form = Form {
    example: "http://host:80",
    schemes: &[("http", 80), ("tcp", 80)],
    tls: TlsForm::None {
        schemes: &["https", "ssl", "tls"],
        why: "driver tcp measures connections of TCP: use driver http",
    },
    has_default_scheme: true,
    default_host: None,
    login: LoginForm::Refused("driver tcp does not log in"),
    path: PathForm::Refused("the path of a request belongs into the phase: path = \"/...\""),
    parameters: &[],
    refused: &[],
};

/// Driver `mqtt`.
pub const MQTT: Form = Form {
    example: "mqtt://host:1883",
    schemes: &[("mqtt", 1_883), ("tcp", 1_883)],
    tls: TlsForm::Schemes(&[("mqtts", 8_883), ("ssl", 8_883), ("tls", 8_883)], FILES),
    has_default_scheme: true,
    default_host: None,
    login: LoginForm::Refused(
        "devices log in with tokens ([dataset] token_prefix); the login of the HTTP interface is target.user and target.password",
    ),
    path: PathForm::Refused("MQTT has no path; topics follow from the payload"),
    parameters: &[],
    refused: &[],
};

const SQL_NAMES: PathForm = PathForm::Name("database");

/// Driver `sql`, MySQL and MariaDB.
pub const MYSQL: Form = Form {
    example: "mysql://user:password@host:3306/database",
    schemes: &[("mysql", 3_306), ("mariadb", 3_306)],
    tls: TlsForm::Modes {
        names: &["ssl-mode", "sslmode"],
        modes: &[
            ("DISABLED", TlsMode::Off),
            ("REQUIRED", TlsMode::Unverified),
            ("VERIFY_CA", TlsMode::AnyName),
            ("VERIFY_IDENTITY", TlsMode::Full),
            ("DISABLE", TlsMode::Off),
        ],
        files: FileNames { authority: "ssl-ca", certificate: "ssl-cert", key: "ssl-key" },
    },
    has_default_scheme: false,
    default_host: Some("127.0.0.1"),
    login: LoginForm::User,
    path: SQL_NAMES,
    parameters: &[("ssl", &["false", "0"]), ("usessl", &["false", "0"])],
    refused: &[("socket", NO_SOCKET), ("unix_socket", NO_SOCKET), ("password", PASSWORD_PLACE)],
};

/// Driver `sql`, PostgreSQL.
pub const POSTGRES: Form = Form {
    example: "postgres://user:password@host:5432/database",
    schemes: &[("postgres", 5_432), ("postgresql", 5_432)],
    tls: TlsForm::Modes {
        names: &["sslmode"],
        modes: &[
            ("disable", TlsMode::Off),
            ("require", TlsMode::Unverified),
            ("verify-ca", TlsMode::AnyName),
            ("verify-full", TlsMode::Full),
        ],
        files: FileNames { authority: "sslrootcert", certificate: "sslcert", key: "sslkey" },
    },
    has_default_scheme: false,
    default_host: Some("127.0.0.1"),
    login: LoginForm::User,
    path: SQL_NAMES,
    parameters: &[],
    refused: &[
        ("socket", NO_SOCKET),
        (
            "host",
            "the host is before the database, and this driver connects over TCP, not over a Unix socket",
        ),
        ("password", PASSWORD_PLACE),
    ],
};

/// Driver `hbase`.
pub const HBASE: Form = Form {
    example: "hbase://zookeeper:2181/hbase or hbase+rpc://master:16000",
    schemes: &[("hbase", 2_181), ("hbase+rpc", 16_000)],
    tls: TlsForm::None { schemes: &["hbases"], why: "HBase itself has no TLS that this driver speaks" },
    has_default_scheme: false,
    default_host: None,
    login: LoginForm::Refused(
        "this driver gives HBase the name in the variable USER, without a proof (simple authentication)",
    ),
    path: PathForm::Name("parent of HBase's znodes"),
    parameters: &[],
    refused: &[],
};

/// Other addresses that are read over HTTP: status pages, metrics, REST interfaces.
pub const ASKED: Form = Form {
    example: "http://host:80/path",
    schemes: &[("http", 80)],
    tls: TlsForm::Schemes(&[("https", 443)], FILES),
    has_default_scheme: false,
    default_host: None,
    login: LoginForm::Refused(
        "it cannot have a user and password: those of the target have keys of their own",
    ),
    path: PathForm::Base,
    parameters: &[],
    refused: &[],
};
