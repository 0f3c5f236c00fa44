"""From the publish of a device to the output of its sensor at a WebSocket."""

import contextlib
import json
import multiprocessing
import threading
import time

import servers

from . import descriptors, generator
from .report import Report
from .session import Session

PREFIX = "sender-"
LOAD_PREFIX = "load-"
TOPIC = "v1/devices/me/telemetry"
WARM_UP_S = 2
END_S = 10
GOAL_MS = 20


def add_arguments(parser):
    parser.add_argument("--devices", type=int, default=10, help="devices, each with a sensor")
    parser.add_argument("--rate", type=int, default=100, help="messages a second of all devices")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--background", type=int, default=0, help="messages a second of 1,000 other devices meanwhile")


QUICK = {"devices": 3, "rate": 30, "seconds": 8}


def run(args):
    report = Report("latency", args)
    with servers.tacho(args.binary, args.out) as server:
        session = Session(server)
        session.add_devices(args.devices, PREFIX)
        for number in range(args.devices):
            # A device joins a subscription within 0.2 s after its first report (docs/protocol/thingsboard-ws.md), so that comes before.
            session.post(f"/api/v1/{PREFIX}{number}/telemetry", {"sent": 0, "celsius": 0})
        session.load_sensors({f"out_{number}.toml": descriptors.passing(f"out_{number}", f"{PREFIX}{number}") for number in range(args.devices)})
        with contextlib.ExitStack() as stack:
            if args.background:
                session.add_devices(1_000, LOAD_PREFIX)
                words = generator.telemetry_words(session, 1_000, LOAD_PREFIX, args.background, args.seconds + END_S)
                process = stack.enter_context(generator.started(args, session, "thingsboard", "load", words))
                stack.callback(process.terminate)
                time.sleep(WARM_UP_S)
            measure(args, session, report)
    return report.finish()


def measure(args, session, report):
    listener = Listener(args, session)
    sent = multiprocessing.Queue()
    # A process of its own, so that reading does not wait for sending.
    sender = multiprocessing.Process(target=publish, args=(session.server.mqtt, args.devices, args.rate, args.seconds, sent))
    sender.start()
    published = sent.get(timeout=args.seconds + 60)
    sender.join()
    listener.wait_for(published)
    for kind, goal in [("input", None), ("output", GOAL_MS)]:
        times = listener.times(kind)
        report.check(f"messages whose {kind} came to the WebSocket", published, len(listener.seen[kind]))
        if times:
            for name, share in [("p50", 0.5), ("p99", 0.99), ("max", 1)]:
                value = times[min(len(times) - 1, int(len(times) * share))]
                report.figure(f"publish to {kind} at the WebSocket, {name} of {len(times)}", value, "ms", at_most=goal if name == "p99" else None)


def publish(port, devices, rate, seconds, sent):
    """Sends messages on a schedule. A message has the time at which it was due, in microseconds."""
    import paho.mqtt.client as mqtt

    clients, acknowledged = [], []
    for number in range(devices):
        connected = threading.Event()
        client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2)
        client.username_pw_set(f"{PREFIX}{number}")
        client.on_connect = lambda *_, event=connected: event.set()
        client.on_publish = lambda *_: acknowledged.append(True)
        client.connect("127.0.0.1", port)
        client.loop_start()
        connected.wait(30)
        clients.append(client)
    begin_us, count = time.time_ns() // 1_000, rate * seconds
    for number in range(count):
        due_us = begin_us + number * 1_000_000 // rate
        time.sleep(max(0, due_us / 1e6 - time.time()))
        values = {"sent": due_us, "celsius": number % 40}
        clients[number % devices].publish(TOPIC, json.dumps({"ts": due_us // 1_000, "values": values}), 1)
    deadline = time.monotonic() + END_S
    while len(acknowledged) < count and time.monotonic() < deadline:
        time.sleep(0.01)
    sent.put(len(acknowledged))
    for client in clients:
        client.disconnect()
        client.loop_stop()


class Listener:
    """A WebSocket that follows all devices and their sensors."""

    def __init__(self, args, session):
        import websocket

        # By kind the time of arrival of each message, by the time at which it was due, both in microseconds.
        self.seen = {"input": {}, "output": {}}
        self.socket = websocket.create_connection(f"ws://127.0.0.1:{session.server.http}/api/ws/plugins/telemetry?token={session.token}", timeout=60)
        self.kinds, commands = {}, []
        for kind, prefix in [("input", PREFIX), ("output", "out_")]:
            for number in range(args.devices):
                device = session.get(f"/api/tenant/devices?deviceName={prefix}{number}")["id"]["id"]
                command = len(commands) + 1
                self.kinds[command] = kind
                commands.append({"entityType": "DEVICE", "entityId": device, "scope": "LATEST_TELEMETRY", "keys": "sent", "cmdId": command})
        self.socket.send(json.dumps({"tsSubCmds": commands, "historyCmds": [], "attrSubCmds": []}))
        for _ in commands:
            self.socket.recv()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        while True:
            text, now_us = self.socket.recv(), time.time_ns() // 1_000
            if not text:
                return
            message = json.loads(text)
            for _, sent in message["data"].get("sent", []):
                if int(sent):
                    self.seen[self.kinds[message["subscriptionId"]]].setdefault(int(sent), now_us)

    def wait_for(self, count):
        """Waits until this number of messages has come, or the time is over."""
        deadline = time.monotonic() + END_S
        while min(map(len, self.seen.values())) < count and time.monotonic() < deadline:
            time.sleep(0.01)

    def times(self, kind):
        """Milliseconds from the due time of messages to their arrival, without those of the first seconds."""
        seen = dict(self.seen[kind])
        begin = min(seen, default=0) + WARM_UP_S * 1_000_000
        return sorted((now - sent) / 1_000 for sent, now in seen.items() if sent >= begin)
