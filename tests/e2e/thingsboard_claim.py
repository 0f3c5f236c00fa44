"""A device with ThingsBoard's own client that lets customers claim it: port, token, secret, milliseconds."""

import sys
import time

from tb_device_mqtt import TBDeviceMqttClient

client = TBDeviceMqttClient("127.0.0.1", int(sys.argv[1]), sys.argv[2])
client.connect()
while not client.is_connected():
    time.sleep(0.05)
sent = client.claim(sys.argv[3], int(sys.argv[4]))
# The PUBACK says that the offer is on the disk.
assert sent.get() == 0, sent.get()
client.disconnect()
