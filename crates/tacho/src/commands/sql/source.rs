//! Runs queries: at a server's HTTP door, or in this process on a data directory without a server.
//!
//! Login and TLS are those of `clients`, but a query goes over a client of tokio. Ctrl-C drops the answer at any time, also before its head; this
//! closes the connection, and so the server ends the query. A thread that waits in the blocking client of `clients::http` cannot be stopped like
//! this: its library does not give away the socket. The time to the head has no limit, unlike there.

use std::pin::pin;
use std::sync::Arc;

use anyhow::{Context, anyhow, bail, ensure};
use bytes::Bytes;
use clients::tls::{TlsClient, TlsFailure};
use futures_util::stream::{BoxStream, unfold};
use futures_util::{StreamExt, TryStreamExt};
use gateway::answer::{Format, deleted_rows, pieces};
use gateway::statements::is_deletion;
use http_body_util::{BodyExt, Full, Limited};
use hub::caller::Caller;
use hub::sql::Reader;
use hub::{Hub, Metrics};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::{Method, Request, header};
use hyper_util::rt::TokioIo;
use serde_json::json;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio_rustls::TlsConnector;

use crate::client::{Api, ServerArgs, message_of};
use crate::config::Config;
use crate::data_directory::{
    Access, Permission, REGISTRY_FILE, check_permission, directory_or_server, open_registry, open_store,
};
use crate::limits::{ANSWER_BYTES_MAX, REQUEST_TIMEOUT};
use crate::output::Audience;
use crate::progress::Progress;

/// The bytes of an answer, piece by piece.
pub(super) type Answer = BoxStream<'static, anyhow::Result<Bytes>>;

/// The address of a server's HTTP door.
#[derive(Debug)]
pub(super) struct SqlServer {
    /// Host and port.
    authority: String,
    /// The database of the queries; the tenant's own one if it is not given.
    database: Option<String>,
    /// TLS; `None` without TLS.
    tls: Option<TlsClient>,
}

/// A connection of either kind.
trait Socket: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Socket for T {}

impl SqlServer {
    fn of(api: &Api, database: Option<&str>) -> anyhow::Result<Self> {
        let (scheme, authority) = api.base().split_once("://").unwrap_or(("http", api.base()));
        ensure!(!authority.contains('/'), "--url {}: leave the path out", api.base());
        let port = if scheme == "https" { 443 } else { 80 };
        // The colons of an IPv6 address are inside brackets.
        let after_host = authority.rsplit(']').next().unwrap_or(authority);
        let host = authority.rsplit_once(':').filter(|_| after_host.contains(':'));
        let host = host.map_or(authority, |(host, _)| host);
        let tls = api.tls().map(|config| config.client(host.trim_matches(['[', ']']))).transpose()?;
        let authority = match after_host.contains(':') {
            true => authority.to_owned(),
            false => format!("{authority}:{port}"),
        };
        Ok(Self { authority, database: database.map(str::to_owned), tls })
    }

    async fn connect(&self) -> std::io::Result<Box<dyn Socket>> {
        let stream = TcpStream::connect(&self.authority).await?;
        let Some(tls) = &self.tls else { return Ok(Box::new(stream)) };
        let connector = TlsConnector::from(tls.config().shared());
        let stream = connector.connect(tls.name(), stream).await.map_err(TlsFailure::explain)?;
        Ok(Box::new(stream))
    }
}

/// The place where queries run.
#[derive(Debug)]
pub(super) enum Source {
    Server { server: SqlServer, bearer: String },
    Directory { hub: Arc<Hub>, reader: Reader, name: String },
}

impl Source {
    /// The server of `--url`, or the server that has the directory, or the directory itself.
    pub(super) fn find(
        server: &ServerArgs,
        database: Option<&str>,
        config: &Config,
        runtime: &Runtime,
    ) -> anyhow::Result<Self> {
        match directory_or_server(server, config, || Self::directory(database, config, runtime))? {
            Access::Directory(directory) => Ok(directory),
            Access::Server(api) => Self::server(&api, database),
        }
    }

    fn server(api: &Api, database: Option<&str>) -> anyhow::Result<Self> {
        let bearer = api.bearer().ok_or_else(|| anyhow!("BUG: a login without a session"))?;
        Ok(Self::Server { server: SqlServer::of(api, database)?, bearer })
    }

    fn directory(database: Option<&str>, config: &Config, runtime: &Runtime) -> anyhow::Result<Self> {
        let data = &config.data;
        check_permission(data, Permission::Change)?;
        // A query must not create a data directory.
        ensure!(
            data.join(REGISTRY_FILE).exists(),
            "{} is not a data directory; name one with --data, or a server with --url",
            data.display()
        );
        let store = open_store(config)?;
        // Standard output is for rows only.
        let registry = open_registry(data, Audience::Programs)?;
        let _guard = runtime.enter();
        // SQL reads no messages of the broker.
        let kv = Arc::new(kv::MemoryStore::new());
        let hub = Hub::start(store, kv, registry, config.ingest.clone(), Arc::new(Metrics::new()))?;
        let name = config.data.display().to_string();
        let opened = local_reader(&hub, database).and_then(|reader| {
            hub.open_sql(config.query.clone())?;
            Ok(reader)
        });
        match opened {
            Ok(reader) => Ok(Self::Directory { hub, reader, name }),
            Err(error) => {
                drop(hub.close());
                Err(error)
            }
        }
    }

    /// The name of the source in the prompt.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Server { server, .. } => format!("the server at {}", server.authority),
            Self::Directory { name, .. } => format!("the store in {name} (no server runs there)"),
        }
    }

    /// Runs a query and shows the progress if it takes long. Dropping the answer ends the query.
    pub(super) async fn ask_watched(&self, text: &str, format: Format) -> anyhow::Result<Answer> {
        let mut progress = Progress::new("waiting for the answer, so far");
        let answer = progress.while_waiting(0, &mut pin!(self.ask(text, format))).await?;
        Ok(unfold(Watched { answer, progress, bytes: 0 }, Watched::next_piece).boxed())
    }

    /// Runs a query. Dropping the answer ends it.
    pub(super) async fn ask(&self, text: &str, format: Format) -> anyhow::Result<Answer> {
        match self {
            Self::Server { server, bearer } => ask_server(server, bearer, text, format).await,
            Self::Directory { hub, reader, .. } => {
                if is_deletion(text) {
                    return delete(hub, text, reader, format).await;
                }
                let answer = hub.sql(text, Vec::new(), reader).await?;
                Ok(pieces(answer, format).await?.map_err(anyhow::Error::from).boxed())
            }
        }
    }

    /// Closes the store of a directory.
    pub(super) fn close(&self) -> anyhow::Result<()> {
        match self {
            Self::Server { .. } => Ok(()),
            Self::Directory { hub, .. } => Ok(hub.close()?),
        }
    }
}

/// The reader of a database of the default tenant.
fn local_reader(hub: &Hub, database: Option<&str>) -> anyhow::Result<Reader> {
    let caller = Caller::local(hub.registry().default_tenant());
    let database = database.map(|name| hub.database(&caller, name)).transpose()?;
    let reader = Reader::from(caller);
    Ok(match database {
        Some(database) => reader.in_database(database),
        None => reader,
    })
}

/// Deletes the rows that a DELETE names from the store of a directory.
async fn delete(hub: &Arc<Hub>, text: &str, reader: &Reader, format: Format) -> anyhow::Result<Answer> {
    let deletion = hub.prepare_sql_deletion(text, &[], reader).await?;
    let rows = hub.rows_to_delete(&deletion, Vec::new(), reader).await?;
    let (hub, reader) = (Arc::clone(hub), reader.clone());
    let deleted = spawn_blocking(move || hub.delete_named_rows(&reader, rows)).await??;
    Ok(deleted_rows(deleted, format)?.map_err(anyhow::Error::from).boxed())
}

/// An answer whose progress is shown.
struct Watched {
    answer: Answer,
    progress: Progress,
    bytes: u64,
}

impl Watched {
    async fn next_piece(mut self) -> Option<(anyhow::Result<Bytes>, Self)> {
        let piece = self.progress.while_waiting(self.bytes, &mut self.answer.next()).await?;
        self.bytes += piece.as_ref().map_or(0, |piece| piece.len() as u64);
        self.progress.at_least(self.bytes);
        Some((piece, self))
    }
}

async fn ask_server(server: &SqlServer, bearer: &str, text: &str, format: Format) -> anyhow::Result<Answer> {
    let authority = &server.authority;
    let no_answer = || {
        format!(
            "no answer from {authority}; check that the server runs and that this is the address of its HTTP door"
        )
    };
    let connecting = tokio::time::timeout(REQUEST_TIMEOUT, server.connect());
    let stream = connecting
        .await
        .map_err(anyhow::Error::from)
        .and_then(|stream| Ok(stream?))
        .with_context(no_answer)?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.with_context(no_answer)?;
    let connection = Connection(tokio::spawn(async move {
        // An error of the connection shows in the answer.
        drop(connection.await);
    }));
    let body = json!({ "query": text, "database": server.database, "format": format.name() }).to_string();
    let request = Request::builder()
        .method(Method::POST)
        .uri("/api/sql")
        .header(header::HOST, authority)
        .header("X-Authorization", bearer)
        .header(header::CONTENT_TYPE, "application/json")
        .body(Full::new(Bytes::from(body)))
        .context("cannot make a request of the query")?;
    let response = sender.send_request(request).await.with_context(no_answer)?;
    let (status, body) = (response.status(), response.into_body());
    if !status.is_success() {
        let whole = Limited::new(body, ANSWER_BYTES_MAX as usize).collect().await;
        let whole = whole.map_err(|error| anyhow!("{error}")).with_context(no_answer)?.to_bytes();
        bail!("{}", message_of(&String::from_utf8_lossy(&whole)));
    }
    Ok(unfold((body, connection), next_piece).boxed())
}

async fn next_piece(
    (mut body, connection): (Incoming, Connection),
) -> Option<(anyhow::Result<Bytes>, (Incoming, Connection))> {
    loop {
        let frame = body.frame().await?.context("the answer was cut off; the server's log may say why");
        match frame.map(hyper::body::Frame::into_data) {
            Ok(Ok(bytes)) => return Some((Ok(bytes), (body, connection))),
            // Trailers are ignored.
            Ok(Err(_)) => {}
            Err(error) => return Some((Err(error), (body, connection))),
        }
    }
}

/// A connection that closes when it is dropped.
struct Connection(JoinHandle<()>);

impl Drop for Connection {
    fn drop(&mut self) {
        self.0.abort();
    }
}
