"""A device with ThingsBoard's own client that updates its firmware: port, token. It prints what it has got as JSON."""

import hashlib
import json
import sys
import time

from tb_device_mqtt import TBDeviceMqttClient
from tb_device_mqtt import TBFirmwareState


def received(client, data, version):
    client.update_firmware_info(title="pump", version=version, state=TBFirmwareState.UPDATED)
    print(json.dumps(["firmware", {"sha256": hashlib.sha256(data).hexdigest(), "version": version}]), flush=True)


client = TBDeviceMqttClient("127.0.0.1", int(sys.argv[1]), sys.argv[2], chunk_size=16_384)
client.set_on_firmware_received_callback(received)
client.connect()
while not client.is_connected():
    time.sleep(0.05)
client.get_firmware_update()
for line in sys.stdin:
    if line.strip() == "end":
        break
client.disconnect()
