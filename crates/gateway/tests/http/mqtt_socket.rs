//! MQTT over WebSocket.

use std::net::TcpListener;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use gateway::door::DoorLimits;
use gateway::mqtt::{MqttDoor, MqttOptions};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::error::Error;
use tokio_tungstenite::tungstenite::http::HeaderValue;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Bytes, Message};
use wire::mqtt::{Connect, Packet, Properties, ProtocolVersion, QoS, decode, encode, encode_publish};

use super::Server;

const VERSION: ProtocolVersion = ProtocolVersion::V5;

/// An HTTP door with an MQTT door.
struct Doors {
    http: Server,
    mqtt: MqttDoor,
}

impl Doors {
    async fn start(limits: DoorLimits) -> Self {
        let mut started = None;
        let http = Server::start_with_hub(|hub, options| {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let mqtt_options = MqttOptions { limits, ..MqttOptions::default() };
            let mqtt = MqttDoor::start(hub.clone(), listener, mqtt_options).unwrap();
            options.mqtt = Some(mqtt.entrance());
            started = Some(mqtt);
        })
        .await;
        http.add_device("car");
        Self { http, mqtt: started.unwrap() }
    }

    async fn open(&self) -> Result<Client, Error> {
        let mut request = "ws://localhost/mqtt".into_client_request().unwrap();
        request.headers_mut().insert("sec-websocket-protocol", HeaderValue::from_static("mqtt"));
        let stream = TcpStream::connect(self.http.address).await.unwrap();
        let (socket, response) = tokio_tungstenite::client_async(request, stream).await?;
        assert_eq!(response.headers()["sec-websocket-protocol"], "mqtt");
        Ok(Client { socket, unread: Vec::new() })
    }

    async fn stop(self) {
        tokio::task::spawn_blocking(|| self.mqtt.stop()).await.unwrap();
        self.http.stop().await;
    }
}

struct Client {
    socket: WebSocketStream<TcpStream>,
    unread: Vec<u8>,
}

impl Client {
    async fn send(&mut self, bytes: &[u8]) {
        self.socket.send(Message::binary(bytes.to_vec())).await.unwrap();
    }

    /// The next packet, described.
    async fn next(&mut self) -> String {
        loop {
            if let Some(decoded) = decode(&self.unread, Some(VERSION), 1 << 20).unwrap() {
                let text = match decoded.packet {
                    Packet::ConnAck(ack) => format!("CONNACK {:#x}", ack.code),
                    Packet::PubAck(ack) => format!("PUBACK {}", ack.packet_id),
                    other => format!("{other:?}"),
                };
                let consumed = decoded.consumed;
                self.unread.drain(..consumed);
                return text;
            }
            match self.socket.next().await.unwrap().unwrap() {
                Message::Binary(bytes) => self.unread.extend_from_slice(&bytes),
                other => panic!("{other:?}"),
            }
        }
    }
}

fn connect() -> Vec<u8> {
    let connect = Connect {
        is_bridge: false,
        version: VERSION,
        clean_start: true,
        keep_alive_s: 60,
        properties: Properties::NONE,
        client_id: "browser",
        will: None,
        username: Some("token-car"),
        password: None,
    };
    let mut bytes = Vec::new();
    encode(&Packet::Connect(connect), VERSION, &mut bytes).unwrap();
    bytes
}

fn publish(packet_id: u16, payload: &str, bytes: &mut Vec<u8>) {
    let topic = "v1/devices/me/telemetry";
    encode_publish(topic, QoS::AtLeastOnce, packet_id, payload.as_bytes(), VERSION, bytes).unwrap();
}

#[tokio::test]
async fn a_session_runs_inside_of_frames_that_are_cut_and_joined_anywhere() {
    let doors = Doors::start(DoorLimits::of_connections(10)).await;
    let mut bytes = connect();
    for packet_id in 1..=20 {
        publish(packet_id, &format!("{{\"n\":{packet_id}}}"), &mut bytes);
    }
    for length in [1, 7, bytes.len()] {
        let mut client = doors.open().await.unwrap();
        for piece in bytes.chunks(length) {
            client.send(piece).await;
        }
        assert_eq!(client.next().await, "CONNACK 0x0");
        for packet_id in 1..=20 {
            assert_eq!(client.next().await, format!("PUBACK {packet_id}"));
        }
        client.socket.send(Message::Ping(Bytes::from_static(b"hello"))).await.unwrap();
        assert_eq!(client.socket.next().await.unwrap().unwrap(), Message::Pong(Bytes::from_static(b"hello")));
        client.socket.close(None).await.unwrap();
        assert!(matches!(client.socket.next().await, Some(Ok(Message::Close(_))) | None));
    }
    let latest = doors.http.latest(doors.http.series("car"), None).unwrap();
    assert_eq!(latest.len(), 1);
    doors.stop().await;
}

#[tokio::test]
async fn a_text_message_is_refused_with_1003() {
    let doors = Doors::start(DoorLimits::of_connections(10)).await;
    let mut client = doors.open().await.unwrap();
    client.send(&connect()).await;
    assert_eq!(client.next().await, "CONNACK 0x0");
    client.socket.send(Message::text("hello")).await.unwrap();
    match client.socket.next().await.unwrap().unwrap() {
        Message::Close(Some(frame)) => assert_eq!(frame.code, CloseCode::Unsupported),
        other => panic!("{other:?}"),
    }
    while !doors.http.metrics().contains("tacho_connections{door=\"mqtt\"} 0\n") {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert!(doors.http.metrics().contains(r#"tacho_refusals_total{door="mqtt",reason="websocket"} 1"#));
    doors.stop().await;
}

/// A client need not wait for the answer to its request before it sends CONNECT.
#[tokio::test]
async fn bytes_that_come_with_the_request_are_not_lost() {
    let doors = Doors::start(DoorLimits::of_connections(10)).await;
    let mut stream = TcpStream::connect(doors.http.address).await.unwrap();
    let connect = connect();
    let mut bytes = b"GET /mqtt HTTP/1.1\r\nhost: t\r\nupgrade: websocket\r\nconnection: Upgrade\r\n\
        sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nsec-websocket-version: 13\r\n\
        sec-websocket-protocol: mqtt\r\n\r\n"
        .to_vec();
    // A mask of zeros changes nothing.
    bytes.extend([0x82, 0x80 | u8::try_from(connect.len()).unwrap(), 0, 0, 0, 0]);
    bytes.extend_from_slice(&connect);
    stream.write_all(&bytes).await.unwrap();
    let mut answer = Vec::new();
    // CONNACK is the packet type 0x20, behind the head of a binary frame.
    while !answer.windows(5).any(|window| window.starts_with(b"\r\n\r\n\x82")) {
        let mut piece = [0; 1024];
        let read = stream.read(&mut piece).await.unwrap();
        assert!(read > 0, "{}", answer.escape_ascii());
        answer.extend_from_slice(&piece[..read]);
    }
    doors.stop().await;
}

#[tokio::test]
async fn the_limits_of_the_mqtt_door_hold_and_the_http_door_is_free_again() {
    let doors = Doors::start(DoorLimits::of_connections(1)).await;
    let mut first = doors.open().await.unwrap();
    first.send(&connect()).await;
    assert_eq!(first.next().await, "CONNACK 0x0");
    match doors.open().await {
        Err(Error::Http(response)) => {
            assert_eq!(response.status(), 503);
            assert_eq!(response.headers()["retry-after"], "1");
        }
        other => panic!("{:?}", other.map(|_| "an open WebSocket")),
    }
    assert!(doors.http.metrics().contains(r#"tacho_refusals_total{door="mqtt",reason="connections_max"} 1"#));
    // A handed over connection counts for one door.
    while !doors.http.metrics().contains("tacho_connections{door=\"http\"} 0\n") {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert!(doors.http.metrics().contains("tacho_connections{door=\"mqtt\"} 1\n"));
    doors.stop().await;
}

#[tokio::test]
async fn a_request_that_is_not_an_upgrade_or_names_no_subprotocol_is_refused() {
    let doors = Doors::start(DoorLimits::of_connections(10)).await;
    let plain = doors.http.request("GET", "/mqtt").send().await.refusal(400, 31);
    assert!(plain.contains("does not ask for an upgrade"), "{plain}");
    let stream = TcpStream::connect(doors.http.address).await.unwrap();
    match tokio_tungstenite::client_async("ws://localhost/mqtt", stream).await {
        Err(Error::Http(response)) => assert_eq!(response.status(), 400),
        other => panic!("{:?}", other.map(|_| "an open WebSocket")),
    }
    doors.stop().await;
    let without = Server::start().await;
    assert!(without.request("GET", "/mqtt").send().await.refusal(404, 32).contains("MQTT door is closed"));
    without.stop().await;
}
