"""A device with ThingsBoard's own client: attributes and calls. It prints what it gets as lines of JSON.

It runs in a process of its own, because the client brings its own copy of paho under the name of the real one.
"""

import json
import sys
import time

from tb_device_mqtt import TBDeviceMqttClient


def tell(what, content):
    print(json.dumps([what, content]), flush=True)


def main(port: int, token: str):
    client = TBDeviceMqttClient("127.0.0.1", port, token)
    client.connect()
    while not client.is_connected():
        time.sleep(0.05)
    client.set_server_side_rpc_request_handler(lambda id_, body: answer(client, id_, body))
    client.subscribe_to_all_attributes(lambda content, *_: tell("attributes", content))
    sent = client.send_attributes({"firmware": "1.2", "axles": 3})
    tell("sent", sent.get())
    client.request_attributes(["firmware"], ["limit"], callback=lambda content, *_: tell("requested", content))
    tell("telemetry", client.send_telemetry({"speed": 12.5}).get())
    for line in sys.stdin:
        if line.strip() == "end":
            break
    client.disconnect()


def answer(client, id_, body):
    tell("call", body)
    client.send_rpc_reply(id_, {"done": body["method"]})


main(int(sys.argv[1]), sys.argv[2])
