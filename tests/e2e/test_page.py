"""The page in Debian's Chromium, as a newcomer sees it, and the simulated fleet behind it."""

import json
import os
import re
import shutil
import signal

import pytest
from playwright.sync_api import expect, sync_playwright

from harness.server import Demo

DEVICES = 12
# The virtual sensors of the demo are devices too.
SENSORS = 2


@pytest.fixture(scope="module")
def chromium():
    """One browser for all tests of this file."""
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    assert path, "no Chromium: sudo apt-get install chromium"
    # Chromium's own sandbox does not work for root.
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=arguments)
        yield browser
        browser.close()


@pytest.fixture
def page(chromium):
    """A page that must not report errors; the network may break, code may not."""
    page = chromium.new_page(viewport={"width": 1280, "height": 800})
    page.set_default_timeout(60_000)
    expect.set_options(timeout=60_000)
    errors = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    yield page
    page.close()
    assert errors == []


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """`tacho demo` with a small fleet; its end is a clean one."""
    with Demo(tmp_path_factory.mktemp("demo"), "--devices", str(DEVICES), "--rate", "5") as demo:
        yield demo


def number(text):
    """A number as the page writes it."""
    return float(re.sub(r"[^\d.]", "", text))


def test_the_demo_shows_its_fleet_live_without_a_login(demo, page):
    page.goto(demo.url)
    expect(page.locator("#link-state")).to_have_text("Live")
    expect(page.locator("#fleet-body tr")).to_have_count(DEVICES + SENSORS)
    expect(page.locator("#stat-connections")).to_have_text(str(DEVICES))
    # 12 devices at 5 messages a second; the page shows the mean of the last seconds.
    page.wait_for_function("() => Number(document.querySelector('#stat-messages').textContent) > 20")
    expect(page.locator("#stat-ack-p99")).to_have_text(re.compile(r"\d"))
    expect(page.locator("#chart-reading")).to_have_text(re.compile(r"\d.* at \d\d:\d\d:\d\d"))


def test_rows_and_chart_move(demo, page):
    page.goto(demo.url)
    expect(page.locator("#link-state")).to_have_text("Live")
    for part in ("#fleet-body", "#chart-reading"):
        expect(page.locator(part)).to_have_text(re.compile(r"\d"))
        before = page.locator(part).inner_text()
        page.wait_for_function("([part, before]) => document.querySelector(part).innerText !== before", arg=[part, before])


def test_a_click_on_a_row_draws_that_device(demo, page):
    page.goto(demo.url)
    row = page.locator("#fleet-body tr").nth(DEVICES - 1)
    name = row.locator("td,th").first.inner_text()
    row.click()
    expect(page.locator("#chart-device")).to_contain_text(name)


def test_the_filter_leaves_the_named_device(demo, page):
    page.goto(demo.url)
    expect(page.locator("#fleet-body tr")).to_have_count(DEVICES + SENSORS)
    names = page.locator("#fleet-body tr td:first-child, #fleet-body tr th:first-child").all_inner_texts()
    name = next(name for name in names if sum(name in other for other in names) == 1)
    page.locator("#fleet-filter").fill(name)
    expect(page.locator("#fleet-body tr")).to_have_count(1)
    expect(page.locator("#fleet-body")).to_contain_text(name)


@pytest.mark.parametrize("width", [360, 768, 1920])
def test_no_width_makes_the_page_scroll_sideways(demo, page, width):
    page.set_viewport_size({"width": width, "height": 800})
    page.goto(demo.url)
    expect(page.locator("#fleet-body tr")).to_have_count(DEVICES + SENSORS)
    wide = page.evaluate("document.documentElement.scrollWidth")
    assert wide <= width


def test_the_page_of_a_server_asks_for_a_login(server, device, page):
    server.api.send(device.token, {"speed": 42})
    page.goto(server.url)
    expect(page.locator("#login")).to_be_visible()
    expect(page.locator("#login-username")).to_have_value("admin@tachograph.local")
    expect(page.locator("#login-password")).to_be_focused()
    page.locator("#login-password").fill("wrong")
    page.locator("#login-button").click()
    expect(page.locator("#login-error")).to_have_text(re.compile(r"\w+ \w+"))
    expect(page.locator("#login")).to_be_visible()
    page.locator("#login-password").fill(server.password)
    page.locator("#login-button").click()
    expect(page.locator("#link-state")).to_have_text("Live")
    page.locator("#fleet-filter").fill(device.name)
    expect(page.locator("#fleet-body")).to_contain_text("42")


def test_values_are_shown_with_all_their_digits(server, device, page):
    values = {"speed": 42.5, "fuel_level": 61.25, "odometer": 123456.789, "latitude": 48.137154, "longitude": 11.575382}
    server.api.send(device.token, values)
    log_in(server, page)
    page.locator("#fleet-filter").fill(device.name)
    row = page.locator("#fleet-body tr").filter(has=page.get_by_text(device.name, exact=True))
    for text in ("42.5", "61.25", "48.137154, 11.575382"):
        expect(row).to_contain_text(text)
    row.click()
    expect(page.locator("#chart-reading")).to_have_text(re.compile(r"^42\.5 km/h at "))
    server.api.send(device.token, {"speed": 43})
    expect(row).to_contain_text("43.0")


def log_in(server, page):
    page.goto(server.url)
    page.locator("#login-password").fill(server.password)
    page.locator("#login-button").click()
    expect(page.locator("#link-state")).to_have_text("Live")


def test_a_session_survives_a_reload_until_the_user_logs_out(server, page):
    log_in(server, page)
    page.reload()
    expect(page.locator("#link-state")).to_have_text("Live")
    expect(page.locator("#user-name")).to_have_text("admin@tachograph.local")
    page.locator("#log-out").click()
    expect(page.locator("#login")).to_be_visible()
    page.reload()
    expect(page.locator("#login")).to_be_visible()


def test_a_token_that_is_no_longer_good_is_renewed_or_asked_for(server, page):
    log_in(server, page)
    spoil = """(members) => {
        const kept = JSON.parse(sessionStorage.getItem("tachograph.session"));
        sessionStorage.setItem("tachograph.session", JSON.stringify({ ...kept, ...members }));
    }"""
    page.evaluate(spoil, {"token": "expired"})
    page.reload()
    expect(page.locator("#link-state")).to_have_text("Live")
    page.evaluate(spoil, {"token": "expired", "refreshToken": "expired"})
    page.reload()
    expect(page.locator("#login")).to_be_visible()


def test_the_demo_has_a_way_in_for_the_administrator(demo, page):
    page.goto(demo.url)
    expect(page.locator("#link-state")).to_have_text("Live")
    page.locator("#log-in").click()
    page.locator("#login-cancel").click()
    expect(page.locator("#fleet-body tr")).to_have_count(DEVICES + SENSORS)
    page.locator("#log-in").click()
    page.locator("#login-password").fill(demo.password)
    page.locator("#login-button").click()
    expect(page.locator("#user-name")).to_have_text("admin@tachograph.local")
    expect(page.locator("#link-state")).to_have_text("Live")
    page.locator("#log-out").click()
    expect(page.locator("#log-in")).to_be_visible()
    expect(page.locator("#link-state")).to_have_text("Live")


def test_the_page_requests_only_the_visible_devices(demo, page):
    watched = []

    def sent(text):
        watched.extend(command for command in json.loads(text)["watchCmds"] if "entityIds" in command)

    page.on("websocket", lambda socket: socket.on("framesent", lambda frame: sent(frame)))
    page.set_viewport_size({"width": 1280, "height": 600})
    page.goto(demo.url)
    expect(page.locator("#fleet-body")).to_have_text(re.compile(r"\d"))

    def rows():
        return [command for command in watched if "keys" not in command]

    while not any(len(command["entityIds"]) > 2 for command in rows()):
        page.wait_for_timeout(50)
    expect(page.locator("#fleet-body tr")).to_have_count(DEVICES + SENSORS)
    names = page.locator("#fleet-body tr td:first-child, #fleet-body tr th:first-child").all_inner_texts()
    name = next(name for name in names if sum(name in other for other in names) == 1)
    page.locator("#fleet-filter").fill(name)
    expect(page.locator("#fleet-body tr")).to_have_count(1)
    while len(rows()[-1]["entityIds"]) != 2:
        page.wait_for_timeout(50)
    # At first some rows are in sight, and not all; at the end that of the filter and the one that is drawn.
    assert 2 < max(len(command["entityIds"]) for command in rows()) < DEVICES
    assert all(command["interval"] >= 1_000 for command in watched)
    # The filter looks at the fault codes of all devices, and at nothing else of them.
    assert [command["keys"] for command in watched if "keys" in command][-1] == ["fault_codes"]


def test_a_silent_server_is_noticed(own_server, page):
    server = own_server({"TACHO_HTTP_PUBLIC_READ": "true"})
    page.goto(server.url)
    expect(page.locator("#link-state")).to_have_text("Live")
    server.process.send_signal(signal.SIGSTOP)
    expect(page.locator("#link-state")).to_have_text("Disconnected, retrying")
    server.process.send_signal(signal.SIGCONT)
    expect(page.locator("#link-state")).to_have_text("Live")
    server.stop()


def test_refused_messages_are_shown_with_their_reason(own_server, page):
    server = own_server()
    device = server.device()
    refused = server.api.session.post(f"{server.url}/api/v1/{device.token}/telemetry", data='{"":1}', timeout=60)
    assert refused.status_code == 400
    page.goto(server.url)
    page.locator("#login-username").fill("admin@tachograph.local")
    page.locator("#login-password").fill(server.password)
    page.locator("#login-button").click()
    expect(page.locator("#refusals-summary")).to_have_text("Refused messages: 1 of 1 device")
    page.locator("#refusals-summary").click()
    expect(page.locator("#refusals-body")).to_contain_text(device.name)
    expect(page.locator("#refusals-body")).to_contain_text("the key is empty")
    server.stop()


def test_the_page_reconnects_when_the_server_returns(own_server, page):
    server = own_server({"TACHO_HTTP_PUBLIC_READ": "true"})
    device = server.device()
    page.goto(server.url)
    expect(page.locator("#link-state")).to_have_text("Live")
    port = server.http
    server.stop()
    expect(page.locator("#link-state")).to_have_text("Disconnected, retrying")
    server.env["TACHO_HTTP_LISTEN"] = f"127.0.0.1:{port}"
    server.start()
    expect(page.locator("#link-state")).to_have_text("Live")
    server.api.send(device.token, {"speed": 43})
    page.locator("#fleet-filter").fill(device.name)
    expect(page.locator("#fleet-body")).to_contain_text("43")
    server.stop()


def test_the_fleet_is_physically_plausible(demo):
    """Every vehicle reports, and what it reports can be true."""
    demo.api  # noqa: B018  the demo's administrator can log in like any other
    devices = demo.api.get("/api/tenant/devices", pageSize=100, page=0, textSearch="vehicle-")["data"]
    assert len(devices) == DEVICES
    for one in devices:
        values = {key: points[0]["value"] for key, points in demo.api.values(one["name"]).items()}
        assert 0 <= values["speed"] <= 250, values
        assert 0 <= values["rpm"] <= 9_000, values
        assert -90 <= values["latitude"] <= 90 and -180 <= values["longitude"] <= 180, values
        assert values["speed"] == 0 or values["rpm"] > 0, values
