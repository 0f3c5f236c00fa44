"""Gates of load tests whose speed does not matter to the test, because the machine may be busy or its hypervisor may take its time."""

ANY_SPEED = ["gates.lag_p99_us_max=1e9", "gates.steal_share_max=1", "gates.generator_core_max=100", "gates.sent_share_min=0", "gates.arrival_max=1e9"]
