"""ThingsBoard's own device client asks for credentials. Its arguments are one JSON object; it prints the answer as a line of JSON.

It runs in a process of its own, because the client brings its own copy of paho under the name of the real one.
"""

import json
import sys

from tb_device_mqtt import TBDeviceMqttClient

print(json.dumps(TBDeviceMqttClient.provision("127.0.0.1", **json.loads(sys.argv[1]))), flush=True)
