"""The gateway process, started by the server: ``python -m facets_server.gateway``.

The first line of standard input holds its settings as JSON. When standard input ends, even because the server died, the
gateway stops. Once it accepts requests, it prints one line with the port of its metrics.
"""

import asyncio
import json
import logging
import os
import socket
import sys
from typing import Any

from prometheus_client import CollectorRegistry

from facets.errors import ConfigError
from facets_server.gateway.server import Gateway
from facets_server.runtime.config import ServerConfig
from facets_server.runtime.metrics_server import MetricsServer


def main() -> int:
    """Runs the gateway until standard input ends; returns the exit code."""
    order = json.loads(sys.stdin.buffer.readline())
    config = ServerConfig.from_dict(order["config"])
    logging.basicConfig(stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    logging.getLogger("facets_server").setLevel(config.log_level)
    try:
        asyncio.run(_serve(order, config))
    except ConfigError as error:
        sys.stderr.write(f"facets-server: {error}\n")
        return 2
    return 0


async def _serve(order: dict[str, Any], config: ServerConfig) -> None:
    registry = CollectorRegistry()
    gateway = Gateway(order["target"], config, registry=registry, token=order["token"])
    metrics = MetricsServer(registry, "127.0.0.1", 0)
    loop = asyncio.get_running_loop()

    def on_input() -> None:
        if not os.read(sys.stdin.fileno(), 4096):
            loop.remove_reader(sys.stdin.fileno())
            gateway.stop()

    loop.add_reader(sys.stdin.fileno(), on_input)
    sys.stdout.write(json.dumps({"metrics_port": metrics.port}) + "\n")
    sys.stdout.flush()
    await gateway.serve_until_signal(socket.socket(fileno=order["socket"]))


if __name__ == "__main__":
    sys.exit(main())
