"""The processing class Email of virtual sensors, with the mail server aiosmtpd."""

import email
import email.policy
import json
import ssl

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult

from harness import databases, wait
from harness.certificates import certificates
from harness.sensors import loaded, shown, write
from test_sensor_classes import FIELDS, START, WAIT_S, connected, exporter, report, road, sensor

LOGIN, PASSWORD = b"tacho", b"mail-secret-7"
MAIL_FIELDS = [("receiver", "string"), ("subject", "string"), ("message", "string")]


class MailServer:
    """A mail server that keeps what it gets. It encrypts and wants a login if it has certificates."""

    def __init__(self, files=None):
        self.port, self.mails, self.answers, self.options = databases.free_port(), [], [], {}
        if files:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(files / "server.pem", files / "server-key.pem")
            self.options = {"tls_context": context, "require_starttls": True, "auth_required": True, "authenticator": self.authenticate}
        self.start()

    def start(self):
        self.controller = Controller(self, hostname="127.0.0.1", port=self.port, **self.options)
        self.controller.start()

    def stop(self):
        self.controller.stop()

    @staticmethod
    def authenticate(_server, _session, _envelope, _mechanism, data):
        return AuthResult(success=(data.login, data.password) == (LOGIN, PASSWORD), handled=False)

    async def handle_RCPT(self, _server, _session, envelope, address, _options):
        if address.startswith("nobody"):
            return "550 5.1.1 no such user"
        envelope.rcpt_tos.append(address)
        return "250 2.1.5 good"

    async def handle_DATA(self, _server, session, envelope):
        mail = email.message_from_bytes(envelope.content, policy=email.policy.default)
        self.mails.append((envelope.rcpt_tos, mail, session.ssl is not None))
        return self.answers.pop(0) if self.answers else "250 2.0.0 kept"

    def texts(self):
        """The lines of the mails; a mail that came again counts once."""
        return list({mail["Message-ID"]: lines_of(mail) for _, mail, _ in self.mails}.values())


def lines_of(mail):
    """A mail ends with an empty line."""
    return mail.get_content().rstrip("\r\n").splitlines()


@pytest.fixture
def mail_server():
    server = MailServer()
    yield server
    server.stop()


def params(mail_server, **more):
    named = {"mail-server": "localhost", "port": mail_server.port, "sender-email": "tacho@example.org", "receiver-email": "ann@example.org"}
    return named | {key.replace("_", "-"): value for key, value in more.items()}


def send(server, first, rows):
    """Rows with the fields of a mail, one in a second."""
    rows = [{"ts": START + (first + at) * 1_000, "values": values} for at, values in enumerate(rows)]
    reply = server.api.session.post(f"{server.url}/api/v1/road/telemetry", json=rows, timeout=WAIT_S)
    assert reply.status_code == 200, reply.text


def readings(count):
    """The lines that mails of rows with numbers end with."""
    return [f"celsius: {at}.0" for at in range(count)]


def last_lines(mail_server):
    return [lines[-1] for lines in mail_server.texts()]


def test_rows_are_mails_also_those_of_an_outage_and_a_kill(own_server, mail_server):
    server = own_server()
    road(server)
    write(server, "out.toml", sensor("out", "gsn.vsensor.EmailVirtualSensor", params(mail_server), FIELDS))
    loaded(server, "out")
    connected(server, "out")
    report(server, 0, [0.0, 1.0])
    wait.until(lambda: last_lines(mail_server) == readings(2), "the mails")
    receivers, mail, _ = mail_server.mails[0]
    assert receivers == ["ann@example.org"]
    assert (mail["From"], mail["To"], mail["Subject"]) == ("tacho@example.org", "ann@example.org", "GSN-Notification")
    assert lines_of(mail)[:2] == ["sensor: out", "timed: 2023-11-14T22:13:20.000Z"]
    # A mail that the server takes later is the same mail, so readers can leave out the second.
    mail_server.answers = ["451 4.3.0 later"]
    report(server, 2, [2.0])
    wait.until(lambda: len(mail_server.mails) == 4, "the mail again")
    assert mail_server.mails[2][1]["Message-ID"] == mail_server.mails[3][1]["Message-ID"]
    wait.until(lambda: exporter(server, "out")["connected"], "the delivery")
    assert "451 4.3.0 later" in exporter(server, "out")["lastError"]
    failures = exporter(server, "out")["failures"]
    mail_server.stop()
    report(server, 3, [3.0, 4.0])
    wait.until(lambda: exporter(server, "out")["failures"] > failures, "a failure of the exporter")
    assert not exporter(server, "out")["connected"]
    server.kill()
    mail_server.start()
    server.start()
    report(server, 5, [5.0])
    wait.until(lambda: last_lines(mail_server) == readings(6), "the mails of the outage")
    wait.until(lambda: exporter(server, "out")["rowsBehind"] == 0, "nothing that waits")
    assert exporter(server, "out")["refused"] == 0


def test_a_mail_that_is_refused_does_not_hold_the_next_one(own_server, mail_server):
    server = own_server()
    road(server)
    query = "select receiver, subject, message, timed from a"
    write(server, "out.toml", sensor("out", "Email", params(mail_server, subject="Road"), MAIL_FIELDS, query=query))
    loaded(server, "out")
    connected(server, "out")
    refused = lambda: exporter(server, "out")["refused"]
    send(server, 0, [{"receiver": "nobody@example.org", "message": "lost"}])
    wait.until(lambda: refused() == 1, "the refusal")
    assert "550 5.1.1 no such user" in exporter(server, "out")["lastError"]
    assert exporter(server, "out")["connected"]
    rows = [
        {"receiver": "bob@example.org", "subject": "ice\r\nBcc: eve@example.org", "message": "23 °C\n.\nwarm"},
        {"receiver": "ann@example.org\r\nBcc: eve@example.org", "message": "injected"},
        {"receiver": "carol@example.org", "subject": "a row without a text sends nothing"},
        {"message": "to all"},
    ]
    send(server, 1, rows)
    wait.until(lambda: len(mail_server.mails) == 2, "the mails")
    wait.until(lambda: exporter(server, "out")["rowsBehind"] == 0, "nothing that waits")
    (first, bob, _), (second, ann, _) = mail_server.mails
    assert (first, second) == (["bob@example.org"], ["ann@example.org"])
    assert (bob["Subject"], bob["Bcc"], ann["Subject"], ann["Bcc"]) == ("ice  Bcc: eve@example.org", None, "Road", None)
    assert (lines_of(bob), lines_of(ann)) == (["23 °C", ".", "warm"], ["to all"])
    assert refused() == 2 and exporter(server, "out")["failures"] == 0
    assert 'tacho_virtual_sensor_follower_refused{sensor="out",follower="export"} 2' in server.api.metrics()


def test_mail_is_encrypted_and_the_certificate_and_the_login_are_checked(own_server, tmp_path):
    files, others = certificates(tmp_path / "files"), certificates(tmp_path / "others")
    mail_server = MailServer(files)
    try:
        server = own_server()
        road(server)

        def install(authority, password):
            login = {"encryption": "starttls", "cafile": str(authority / "ca.pem"), "user": LOGIN.decode(), "password": password}
            write(server, "out.toml", sensor("out", "Email", params(mail_server, **login), FIELDS))

        install(others, PASSWORD.decode())
        loaded(server, "out")
        error = lambda: (exporter(server, "out") or {}).get("lastError") or ""
        wait.until(lambda: "certificate" in error(), "the authority that is refused")
        assert "not connected" in server.command("sensor", "list").stdout
        install(files, "wrong")
        wait.until(lambda: "the login: 535" in error(), "the password that is refused")
        report(server, 0, [0.0])
        install(files, PASSWORD.decode())
        wait.until(lambda: last_lines(mail_server) == readings(1), "the mail that waited")
        assert all(is_encrypted for _, _, is_encrypted in mail_server.mails)
        assert exporter(server, "out")["refused"] == 0
        seen = json.dumps(shown(server, "out")) + server.command("sensor", "list", "out").stdout + server.log()
        assert PASSWORD.decode() not in seen
    finally:
        mail_server.stop()
