"""ThingsBoard's own device client with credentials of any kind. Its arguments are one JSON object; it prints a line of JSON.

It runs in a process of its own, because the client brings its own copy of paho under the name of the real one.
"""

import json
import sys
import time

from tb_device_mqtt import TBDeviceMqttClient

WAIT_S = 20


def main(options):
    client = TBDeviceMqttClient(options["host"], options["port"], **options["login"])
    client.connect(**options.get("tls", {}))
    deadline = time.monotonic() + WAIT_S
    while not client.is_connected() and time.monotonic() < deadline:
        time.sleep(0.05)
    sent = client.send_telemetry(options["values"]).get() if client.is_connected() else None
    print(json.dumps({"connected": client.is_connected(), "sent": sent}), flush=True)
    client.disconnect()


main(json.loads(sys.argv[1]))
