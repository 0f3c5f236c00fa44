//! The HTTP door.

mod alarm_query;
mod alarms;
mod attributes;
mod auth;
mod credentials;
mod device_api;
mod devices;
mod entities;
mod entity_query;
mod entity_socket;
mod errors;
mod gsn;
mod influx_query;
mod maintenance;
mod mqtt_socket;
mod points;
mod provision;
mod rpc;
mod server;
mod sql;
mod telemetry;
mod telemetry_write;
mod telnet;
mod thingsboard_users;
mod undescribed;
mod websocket;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use gateway::http::HttpOptions;
use gateway::http_door::serve;
use hub::caller::{Caller, Role};
use hub::registry::{FirstStart, NewDevice, NewUser, Registry};
use hub::{Durability, Hub, LatestValue, Metrics};
use model::limits::{IngestLimits, Portion};
use model::{Batch, SeriesId, Timestamp, ValueRef};
use serde_json::Value as Json;
use store::MemoryStore;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use uuid::Uuid;
use virtual_sensors::VirtualSensors;

/// Ends a test that hangs. No test waits this long otherwise.
const GUARD: Duration = Duration::from_secs(60);

/// A running door.
struct Server {
    address: SocketAddr,
    store: Arc<MemoryStore>,
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

    async fn start_with(change: impl FnOnce(&mut HttpOptions)) -> Self {
        Self::start_with_hub(|_, options| change(options)).await
    }

    /// Starts with options that depend on the hub.
    async fn start_with_hub(change: impl FnOnce(&Arc<Hub>, &mut HttpOptions)) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let (registry, admin) = Registry::open(&directory.path().join("registry.db")).unwrap();
        let store = Arc::new(MemoryStore::new());
        let metrics = Arc::new(Metrics::new());
        let kv = Arc::new(kv::MemoryStore::new());
        let hub = Hub::start(store.clone(), kv.clone(), registry, IngestLimits::default(), metrics).unwrap();
        let sensors = VirtualSensors::new(Portion::ALL, hub.clone(), store.clone(), kv);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut options = HttpOptions { listen: address, version: "9.8.7", ..HttpOptions::default() };
        change(&hub, &mut options);
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = tokio::spawn(serve(hub.clone(), sensors, listener, options, async {
            let _ = stopped.await;
        }));
        Self { address, store, hub, admin: admin.unwrap(), stop: Some(stop), serving, _directory: directory }
    }

    /// Adds a device with the token `token-<name>`; returns its id.
    fn add_device(&self, name: &str) -> String {
        let registry = self.hub.registry();
        let token = format!("token-{name}");
        let new = NewDevice { name, token: Some(&token), ..NewDevice::default() };
        registry.add_device(registry.default_tenant(), new).unwrap().device.id.to_string()
    }

    /// A session token of the administrator, without the slow password.
    fn session(&self) -> String {
        let registry = self.hub.registry();
        let user = registry.users(registry.default_tenant()).remove(0);
        registry.open_session(&user, hub::clock::system_now()).token
    }

    fn public_session(&self) -> String {
        let registry = self.hub.registry();
        registry.open_public_session(registry.default_tenant(), hub::clock::system_now()).token
    }

    fn series(&self, name: &str) -> SeriesId {
        let registry = self.hub.registry();
        let device = registry.device_by_name(registry.default_tenant(), name).unwrap();
        self.hub.series_of(&device).unwrap()
    }

    /// The newest values of a series.
    fn latest(&self, series: SeriesId, keys: Option<&[String]>) -> Result<Vec<LatestValue>, hub::Error> {
        let caller = Caller::local(self.hub.registry().default_tenant());
        self.hub.latest(&caller, series, keys)
    }

    /// Appends one value of one device, as a door would.
    fn put(&self, name: &str, ts_ms: i64, key: &str, value: ValueRef<'_>) {
        let mut batch = Batch::new();
        let mut row = batch.builder();
        row.field(key, value);
        row.row(self.series(name), Timestamp::from_millis(ts_ms).unwrap());
        row.finish();
        self.hub.ingest(&batch, Durability::Fsync).unwrap();
    }

    fn request(&self, method: &str, path: &str) -> Request {
        Request {
            address: self.address,
            head: format!("{method} {path} HTTP/1.1\r\nhost: test\r\nconnection: close\r\n"),
            body: Vec::new(),
        }
    }

    /// A GET with the administrator's session.
    async fn get(&self, path: &str) -> Reply {
        self.request("GET", path).session(&self.session()).send().await
    }

    /// A POST of JSON with the administrator's session.
    async fn post(&self, path: &str, body: &str) -> Reply {
        self.request("POST", path).session(&self.session()).body(body).send().await
    }

    /// A DELETE with the administrator's session.
    async fn delete(&self, path: &str) -> Reply {
        self.request("DELETE", path).session(&self.session()).send().await
    }

    /// A session token of a new user with a role.
    fn session_of(&self, login: &str, role: Role, customer: Option<Uuid>) -> String {
        let registry = self.hub.registry();
        let new = NewUser { login, role, customer, ..NewUser::default() };
        let user = registry.create_user(registry.default_tenant(), new).unwrap();
        registry.open_session(&user, hub::clock::system_now()).token
    }

    /// Telemetry of the device `name`.
    async fn report(&self, name: &str, payload: &str) -> Reply {
        self.request("POST", &format!("/api/v1/token-{name}/telemetry")).body(payload).send().await
    }

    /// The text of `/metrics`.
    fn metrics(&self) -> String {
        self.hub.metrics_text()
    }

    /// Stops the door and the hub behind it.
    async fn stop(mut self) {
        drop(self.stop.take());
        tokio::time::timeout(GUARD, self.serving).await.unwrap().unwrap().unwrap();
        let _ = self.hub.close();
    }
}

/// A request that is being written.
struct Request {
    address: SocketAddr,
    head: String,
    body: Vec<u8>,
}

impl Request {
    fn header(mut self, name: &str, value: &str) -> Self {
        self.head.push_str(&format!("{name}: {value}\r\n"));
        self
    }

    fn session(self, token: &str) -> Self {
        self.header("x-authorization", &format!("Bearer {token}"))
    }

    fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    async fn send(self) -> Reply {
        let length = self.body.len();
        let head = format!("{}content-length: {length}\r\n\r\n", self.head);
        let bytes = [head.as_bytes(), &self.body].concat();
        exchange(self.address, &bytes).await
    }
}

/// Sends bytes and reads until the server closes.
async fn exchange(address: SocketAddr, bytes: &[u8]) -> Reply {
    let mut stream = TcpStream::connect(address).await.unwrap();
    // A server that refuses may close before it has read everything.
    let _ = stream.write_all(bytes).await;
    let mut answer = Vec::new();
    let read = tokio::time::timeout(GUARD, stream.read_to_end(&mut answer)).await.expect("an answer");
    assert!(read.is_ok() || !answer.is_empty(), "no answer: {read:?}");
    Reply::parse(&answer)
}

/// An answer.
#[derive(Debug)]
struct Reply {
    status: u16,
    headers: HashMap<String, String>,
    body: Vec<u8>,
}

impl Reply {
    fn parse(answer: &[u8]) -> Self {
        let end = answer.windows(4).position(|part| part == b"\r\n\r\n").expect("a complete head");
        let head = std::str::from_utf8(&answer[..end]).unwrap();
        let mut lines = head.split("\r\n");
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let headers = lines.map(|line| {
            let (name, value) = line.split_once(": ").unwrap();
            (name.to_ascii_lowercase(), value.to_owned())
        });
        Self { status, headers: headers.collect(), body: answer[end + 4..].to_vec() }
    }

    fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    #[track_caller]
    fn json(&self) -> Json {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {:?}", self.text()))
    }

    /// The JSON of an answer with status 200.
    #[track_caller]
    fn ok(&self) -> Json {
        assert_eq!(self.status, 200, "{}", self.text());
        self.json()
    }

    /// Checks that the status is 200 and the body does not matter.
    #[track_caller]
    fn ok_empty(&self) {
        assert_eq!(self.status, 200, "{}", self.text());
    }

    /// The message of a refusal, whose shape and status are checked.
    #[track_caller]
    fn refusal(&self, status: u16, code: u16) -> String {
        assert_eq!(self.status, status, "{}", self.text());
        assert_eq!(self.headers["content-type"], "application/json");
        let body = self.json();
        assert_eq!((&body["status"], &body["errorCode"]), (&status.into(), &code.into()), "{body}");
        assert!(body["timestamp"].as_i64().unwrap() > 1_600_000_000_000, "{body}");
        let message = body["message"].as_str().unwrap();
        assert!(!message.is_empty());
        message.to_owned()
    }
}
