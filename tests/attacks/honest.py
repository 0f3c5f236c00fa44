"""One honest device that publishes at QoS 1 while an attack runs, and the latency of its acks."""

import threading
import time

from harness import packets
from harness.packets import PUBACK, Wire


class HonestDevice:
    """Publishes every 20 ms on one connection, from `with` to its end; then every message must have its ack."""

    def __init__(self, server):
        self.server = server
        self.device = server.device()
        self.waits_s = []
        self._stop = threading.Event()
        self._begun = threading.Event()
        self._fault = None
        self._thread = threading.Thread(target=self._run)

    def __enter__(self):
        """Returns after the first ack, so that an attack of milliseconds does not end before it."""
        self._thread.start()
        self._begun.wait(60)
        return self

    def __exit__(self, kind, error, trace):
        self._stop.set()
        self._thread.join()
        if kind is None:
            assert self._fault is None, f"the honest device failed: {self._fault!r}\n{self.server.log()[-4000:]}"
            assert self.waits_s, "the honest device published nothing"
            waits = sorted(self.waits_s)
            p99_ms = waits[int(len(waits) * 0.99)] * 1000
            print(f"honest device: {len(waits)} messages acknowledged, p99 {p99_ms:.1f} ms, longest {waits[-1] * 1000:.1f} ms")

    def _run(self):
        try:
            with Wire(self.server.mqtt, timeout_s=60).session(self.device.token) as wire:
                while not self._stop.is_set():
                    identifier = len(self.waits_s) % 65_535 + 1
                    began = time.monotonic()
                    kind, _ = wire.send(packets.publish(b'{"n":1}', identifier)).receive()
                    assert kind == PUBACK
                    self.waits_s.append(time.monotonic() - began)
                    self._begun.set()
                    time.sleep(0.02)
        except Exception as fault:
            self._fault = fault
            self._begun.set()
