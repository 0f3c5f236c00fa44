"""A gateway with ThingsBoard's own client. It prints what it gets as lines of JSON, and disconnects a device for each line that it reads.

It runs in a process of its own, because the client brings its own copy of paho under the name of the real one.
"""

import json
import sys
import time

from tb_gateway_mqtt import TBGatewayMqttClient


def tell(what, content):
    print(json.dumps([what, content]), flush=True)


def main(port: int, token: str):
    client = TBGatewayMqttClient("127.0.0.1", port, token)
    client.connect()
    while not client.is_connected() or client.get_subscriptions_in_progress():
        time.sleep(0.05)
    client.gw_set_server_side_rpc_request_handler(answer)
    client.gw_subscribe_to_all_attributes(lambda content, *_: tell("attributes", content))
    tell("connected", [client.gw_connect_device("pump", "pumps").get(), client.gw_connect_device("valve").get()])
    now_ms = int(time.time() * 1000)
    rows = [{"ts": now_ms - 1000, "values": {"flow": 1}}, {"ts": now_ms, "values": {"flow": 2}}]
    tell("telemetry", [client.gw_send_telemetry("pump", rows).get(), client.gw_send_telemetry("valve", {"open": True}).get()])
    tell("sent", client.gw_send_attributes("pump", {"firmware": "1.2"}).get())
    client.gw_request_client_attributes("pump", ["firmware", "serial"], lambda content, *_: tell("client", content))
    client.gw_request_shared_attributes("pump", ["limit"], lambda content, *_: tell("shared", content))
    for line in sys.stdin:
        if line.strip() == "end":
            break
        tell("disconnected", client.gw_disconnect_device(line.strip()).get())
    client.disconnect()


def answer(client, content):
    tell("call", content)
    client.gw_send_rpc_reply(content["device"], content["data"]["id"], {"done": content["data"]["method"]})


main(int(sys.argv[1]), sys.argv[2])
