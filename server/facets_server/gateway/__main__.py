"""The gateway as a process of its own, started by the server: ``python -m facets_server.gateway``.

One line of JSON on standard input says what to do; its end, also by the death of the server, is the order to stop.
Once the gateway answers, one line on standard output has the port of its metrics.
"""

import asyncio
import json
import logging
import os
import socket
import sys

from prometheus_client import CollectorRegistry

from facets.errors import ConfigError
from facets_server.gateway.serving import Gateway
from facets_server.runtime.config import ServerConfig
from facets_server.runtime.metrics_server import MetricsServer


def main() -> int:
    """Runs until standard input ends; returns the exit code."""
    order = json.loads(sys.stdin.buffer.readline())
    config = ServerConfig.from_dict(order["config"])
    logging.basicConfig(stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    logging.getLogger("facets_server").setLevel(config.log_level)
    registry = CollectorRegistry()
    metrics = MetricsServer(registry, "127.0.0.1", 0)
    gateway = Gateway(order["target"], config, token=order["token"], registry=registry)
    sys.stdout.write(json.dumps({"metrics_port": metrics.port}) + "\n")
    sys.stdout.flush()
    try:
        asyncio.run(_serve(gateway, socket.socket(fileno=order["socket"])))
    except ConfigError as error:
        sys.stderr.write(f"facets-server: {error}\n")
        return 2
    return 0


async def _serve(gateway: Gateway, bound: socket.socket) -> None:
    loop = asyncio.get_running_loop()

    def on_input() -> None:
        if not os.read(sys.stdin.fileno(), 4096):
            loop.remove_reader(sys.stdin.fileno())
            gateway.stop()

    loop.add_reader(sys.stdin.fileno(), on_input)
    await gateway.serve_until_signal(bound)


if __name__ == "__main__":
    sys.exit(main())
