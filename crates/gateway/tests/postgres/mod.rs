//! The PostgreSQL door, byte by byte. `tests/e2e` tests it with real clients.

mod scripts;

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use gateway::door::Networks;
use gateway::postgres::{PostgresOptions, serve};
use hub::registry::{FirstStart, Registry};
use hub::{Hub, Metrics};
use model::limits::{IngestLimits, QueryLimits};
use store::MemoryStore;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// Ends a test that hangs. No test waits this long otherwise.
const GUARD: Duration = Duration::from_secs(60);

/// A query that does not end within any test.
const ENDLESS: &str = "SELECT count(*) FROM generate_series(1, 100000000000) AS t(x)";

/// A running door.
struct Server {
    address: SocketAddr,
    hub: Arc<Hub>,
    admin: FirstStart,
    stop: Option<oneshot::Sender<()>>,
    serving: JoinHandle<std::io::Result<()>>,
    _directory: TempDir,
}

impl Server {
    async fn start() -> Self {
        Self::start_with(|_| {}).await
    }

    async fn start_with(change: impl FnOnce(&mut PostgresOptions)) -> Self {
        Self::start_over(Arc::new(MemoryStore::new()), change).await
    }

    async fn start_over(store: Arc<MemoryStore>, change: impl FnOnce(&mut PostgresOptions)) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let (registry, admin) = Registry::open(&directory.path().join("registry.db")).unwrap();
        let kv = Arc::new(kv::MemoryStore::new());
        let hub = Hub::start(store, kv, registry, IngestLimits::default(), Arc::new(Metrics::new())).unwrap();
        hub.open_sql(QueryLimits::default()).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut options = PostgresOptions { public_read: true, ..PostgresOptions::default() };
        change(&mut options);
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = tokio::spawn(serve(hub.clone(), listener, options, async {
            let _ = stopped.await;
        }));
        Self { address, hub, admin: admin.unwrap(), stop: Some(stop), serving, _directory: directory }
    }

    /// A client after its login as the public user.
    async fn client(&self) -> Client {
        let mut client = Client::connect(self.address).await;
        client.send(&startup("public")).await;
        let greeting = client.until_ready().await;
        assert_eq!(greeting.first(), Some(&(b'R', vec![0, 0, 0, 0])));
        client
    }

    async fn stop(mut self) {
        drop(self.stop.take());
        tokio::time::timeout(GUARD, self.serving).await.unwrap().unwrap().unwrap();
        let _ = self.hub.close();
    }
}

/// A message of the server: its type and its body.
type Said = (u8, Vec<u8>);

struct Client(TcpStream);

impl Client {
    async fn connect(address: SocketAddr) -> Self {
        Self(TcpStream::connect(address).await.unwrap())
    }

    async fn send(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).await.unwrap();
    }

    /// The next message; `None` when the server has closed.
    async fn next(&mut self) -> Option<Said> {
        let reading = async {
            let kind = self.0.read_u8().await.ok()?;
            let length = self.0.read_i32().await.unwrap() as usize;
            let mut body = vec![0; length - 4];
            self.0.read_exact(&mut body).await.unwrap();
            Some((kind, body))
        };
        tokio::time::timeout(GUARD, reading).await.expect("an answer")
    }

    /// All messages up to ReadyForQuery, and that.
    async fn until_ready(&mut self) -> Vec<Said> {
        let mut all = Vec::new();
        loop {
            all.push(self.next().await.expect("the connection lives"));
            if all.last().is_some_and(|(kind, _)| *kind == b'Z') {
                return all;
            }
        }
    }

    async fn query(&mut self, text: &str) -> Vec<Said> {
        self.send(&message(b'Q', &[text.as_bytes(), b"\0"].concat())).await;
        self.until_ready().await
    }
}

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    [&[kind], (body.len() as i32 + 4).to_be_bytes().as_slice(), body].concat()
}

fn startup(user: &str) -> Vec<u8> {
    let body = format!("user\0{user}\0database\0tacho\0\0");
    [(body.len() as i32 + 8).to_be_bytes().as_slice(), &[0, 3, 0, 0], body.as_bytes()].concat()
}

fn parse(name: &str, text: &str) -> Vec<u8> {
    message(b'P', format!("{name}\0{text}\0\0\0").as_bytes())
}

/// Binds texts.
fn bind(portal: &str, statement: &str, values: &[&str]) -> Vec<u8> {
    let mut body = format!("{portal}\0{statement}\0\0\0").into_bytes();
    body.extend((values.len() as i16).to_be_bytes());
    for value in values {
        body.extend((value.len() as i32).to_be_bytes());
        body.extend(value.as_bytes());
    }
    body.extend([0, 0]);
    message(b'B', &body)
}

fn describe(what: char, name: &str) -> Vec<u8> {
    message(b'D', format!("{what}{name}\0").as_bytes())
}

fn execute(portal: &str, rows_max: i32) -> Vec<u8> {
    message(b'E', &[portal.as_bytes(), b"\0", &rows_max.to_be_bytes()].concat())
}

fn sync() -> Vec<u8> {
    message(b'S', b"")
}

fn kinds(all: &[Said]) -> String {
    all.iter().map(|(kind, _)| *kind as char).collect()
}

/// The texts of the rows' first columns.
fn rows(all: &[Said]) -> Vec<String> {
    let rows = all.iter().filter(|(kind, _)| *kind == b'D');
    rows.map(|(_, body)| {
        let length = i32::from_be_bytes(body[2..6].try_into().unwrap()) as usize;
        String::from_utf8(body[6..6 + length].to_vec()).unwrap()
    })
    .collect()
}

/// The field of an error that this letter stands for.
fn field(all: &[Said], letter: char) -> String {
    let (_, body) =
        all.iter().find(|(kind, _)| *kind == b'E').unwrap_or_else(|| panic!("no error in {all:?}"));
    let text = String::from_utf8_lossy(body);
    text.split('\0').find_map(|field| field.strip_prefix(letter)).unwrap().to_owned()
}

#[tokio::test]
async fn a_password_is_requested_and_checked() {
    let server = Server::start().await;
    let mut client = Client::connect(server.address).await;
    // First the request for TLS, which the server declines with one byte.
    client.send(&[0, 0, 0, 8, 4, 210, 22, 47]).await;
    assert_eq!(client.0.read_u8().await.unwrap(), b'N');
    client.send(&startup(&server.admin.login)).await;
    assert_eq!(client.next().await, Some((b'R', vec![0, 0, 0, 3])));
    client.send(&message(b'p', format!("{}\0", server.admin.password).as_bytes())).await;
    let greeting = client.until_ready().await;
    assert!(kinds(&greeting).starts_with("RS") && kinds(&greeting).ends_with("KZ"), "{}", kinds(&greeting));
    assert!(greeting.contains(&(b'S', b"server_version\x0016.6\0".to_vec())), "{greeting:?}");

    let mut client = Client::connect(server.address).await;
    client.send(&startup(&server.admin.login)).await;
    client.next().await.unwrap();
    client.send(&message(b'p', b"wrong\0")).await;
    let refused = client.next().await.unwrap();
    assert_eq!(
        (field(std::slice::from_ref(&refused), 'C'), field(&[refused], 'S')),
        ("28P01".into(), "FATAL".into())
    );
    assert_eq!(client.next().await, None);
    server.stop().await;
}

#[tokio::test]
async fn the_simple_protocol_runs_statements_until_one_fails() {
    let server = Server::start().await;
    let mut client = server.client().await;
    let all = client.query("SELECT 1 AS a; SELECT 'x;y'; -- end").await;
    assert_eq!((kinds(&all).as_str(), rows(&all)), ("TDCTDCZ", vec!["1".into(), "x;y".into()]));
    let all = client.query("SELECT 1; SELECT nothing; SELECT 2").await;
    assert_eq!((kinds(&all).as_str(), field(&all, 'C').as_str()), ("TDCEZ", "42703"));
    assert_eq!(kinds(&client.query(" ; ").await), "IZ");
    let all = client.query("SHOW server_version").await;
    assert_eq!((kinds(&all).as_str(), rows(&all)), ("TDCZ", vec!["16.6".into()]));
    assert_eq!(field(&client.query("INSERT INTO t VALUES (1)").await, 'C'), "25006");
    server.stop().await;
}

#[tokio::test]
async fn the_extended_protocol_gives_rows_in_portions() {
    let server = Server::start().await;
    let mut client = server.client().await;
    let text = "SELECT x FROM generate_series(1, 5) AS t(x) WHERE x > $1 ORDER BY x";
    let ask = [
        parse("s", text),
        describe('S', "s"),
        bind("p", "s", &["1"]),
        describe('P', "p"),
        execute("p", 2),
        execute("p", 2),
        execute("p", 2),
        sync(),
    ];
    client.send(&ask.concat()).await;
    let all = client.until_ready().await;
    assert_eq!(kinds(&all), "1tT2TDDsDDCCZ", "{all:?}");
    assert_eq!(rows(&all), ["2", "3", "4", "5"]);
    assert_eq!(all[1].1, [0, 1, 0, 0, 0, 20], "one parameter, an int8");
    // The Sync has closed the portal, but not the statement.
    client.send(&[execute("p", 0), sync()].concat()).await;
    assert_eq!(field(&client.until_ready().await, 'C'), "34000");
    client.send(&[bind("", "s", &["4"]), execute("", 0), sync()].concat()).await;
    assert_eq!(rows(&client.until_ready().await), ["5"]);
    server.stop().await;
}

#[tokio::test]
async fn after_an_error_messages_up_to_sync_are_skipped() {
    let server = Server::start().await;
    let mut client = server.client().await;
    let ask = [parse("", "SELECT nothing"), bind("", "", &[]), execute("", 0), sync(), parse("", "SELECT 1")];
    client.send(&[ask.concat(), bind("", "", &[]), execute("", 0), sync()].concat()).await;
    assert_eq!(kinds(&client.until_ready().await), "EZ");
    let all = client.until_ready().await;
    assert_eq!((kinds(&all).as_str(), rows(&all)), ("12DCZ", vec!["1".into()]));
    server.stop().await;
}

#[tokio::test]
async fn cursors_live_in_their_transaction() {
    let server = Server::start().await;
    let mut client = server.client().await;
    let declare = "DECLARE c CURSOR FOR SELECT x FROM generate_series(1, 10) AS t(x) ORDER BY x";
    assert_eq!(field(&client.query(declare).await, 'C'), "25P01");
    assert_eq!(client.query("BEGIN").await.last(), Some(&(b'Z', b"T".to_vec())));
    client.query(declare).await;
    assert_eq!(rows(&client.query("FETCH 2 FROM c").await), ["1", "2"]);
    client.query("MOVE 5 IN c").await;
    let all = client.query("FETCH ALL FROM c").await;
    assert_eq!(rows(&all), ["8", "9", "10"]);
    assert!(all.contains(&(b'C', b"FETCH 3\0".to_vec())), "{all:?}");
    assert_eq!(client.query("COMMIT").await.last(), Some(&(b'Z', b"I".to_vec())));
    assert_eq!(field(&client.query("FETCH 1 FROM c").await, 'C'), "34000");
    server.stop().await;
}

#[tokio::test]
async fn a_running_query_is_cancelled_by_another_connection() {
    let server = Server::start().await;
    let mut client = Client::connect(server.address).await;
    client.send(&startup("public")).await;
    let greeting = client.until_ready().await;
    let key = &greeting.iter().find(|(kind, _)| *kind == b'K').unwrap().1;
    client.send(&message(b'Q', format!("{ENDLESS}\0").as_bytes())).await;
    // A cancel request before the query has no effect, so the test repeats it until the query ends.
    let cancel = [&[0, 0, 0, 16, 4, 210, 22, 46], key.as_slice()].concat();
    let address = server.address;
    let asking = tokio::spawn(async move {
        loop {
            let mut other = Client::connect(address).await;
            other.send(&cancel).await;
            assert_eq!(other.next().await, None);
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
    let all = client.until_ready().await;
    asking.abort();
    assert_eq!(field(&all, 'C'), "57014");
    server.stop().await;
}

#[tokio::test]
async fn an_invalid_message_is_an_error_and_ends_the_connection() {
    let server = Server::start().await;
    for bytes in [b"GET / HTTP/1.1\r\n\r\n".as_slice(), &[0, 0, 0, 9, 0, 2, 0, 0, 0]] {
        let mut client = Client::connect(server.address).await;
        client.send(bytes).await;
        let refused = client.next().await.unwrap();
        assert_eq!(field(&[refused], 'S'), "FATAL");
        assert_eq!(client.next().await, None);
    }
    let mut client = server.client().await;
    client.send(&message(b'!', b"")).await;
    assert_eq!(field(&[client.next().await.unwrap()], 'C'), "08P01");
    assert_eq!(client.next().await, None);
    server.stop().await;
}

#[tokio::test]
async fn a_connection_over_the_limit_is_refused() {
    let server = Server::start_with(|options| options.limits.connections_max = 1).await;
    let held = server.client().await;
    let mut second = Client::connect(server.address).await;
    second.send(&startup("public")).await;
    assert_eq!(field(&[second.next().await.unwrap()], 'C'), "53300");
    assert_eq!(second.next().await, None);
    drop(held);
    server.stop().await;
}

#[tokio::test]
async fn statements_above_the_rate_are_refused_and_the_session_continues() {
    let server =
        Server::start_with(|options| options.limits.requests_per_second_max = NonZeroU32::new(1)).await;
    let mut client = server.client().await;
    // A slow machine may take longer than a second for a statement.
    let refused = loop {
        client.send(&message(b'Q', b"SELECT 1\0")).await;
        let answers = client.until_ready().await;
        if answers.iter().any(|(kind, _)| *kind == b'E') {
            break answers;
        }
    };
    assert_eq!(field(&refused, 'C'), "53400");
    assert!(field(&refused, 'M').contains("(postgres.requests_per_second_max)"));
    server.stop().await;
}

#[tokio::test]
async fn a_load_balancer_announces_its_clients() {
    let server = Server::start_with(|options| {
        options.proxies = Networks::parse(["127.0.0.1"]).unwrap();
        options.limits.connections_per_address_max = 1;
    })
    .await;
    let header = |client: &str| format!("PROXY TCP4 {client} 192.0.2.1 50000 5432\r\n").into_bytes();
    let mut held = Client::connect(server.address).await;
    held.send(&[header("203.0.113.1"), startup("public")].concat()).await;
    held.until_ready().await;
    let mut same = Client::connect(server.address).await;
    same.send(&[header("203.0.113.1"), startup("public")].concat()).await;
    assert_eq!(field(&[same.next().await.unwrap()], 'C'), "53300");
    let mut other = Client::connect(server.address).await;
    other.send(&[header("203.0.113.2"), startup("public")].concat()).await;
    other.until_ready().await;
    let mut headless = Client::connect(server.address).await;
    headless.send(&startup("public")).await;
    assert_eq!(headless.next().await, None);
    server.stop().await;
}

#[tokio::test]
async fn stopping_sends_an_error_to_idle_sessions() {
    let server = Server::start().await;
    let mut idle = server.client().await;
    let stopping = tokio::spawn(server.stop());
    assert_eq!(field(&[idle.next().await.unwrap()], 'C'), "57P01");
    assert_eq!(idle.next().await, None);
    stopping.await.unwrap();
}
