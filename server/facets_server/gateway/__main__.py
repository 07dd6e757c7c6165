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

from prometheus_client import CollectorRegistry

from facets.errors import ConfigError
from facets_server.gateway.server import Gateway
from facets_server.runtime.config import ServerConfig
from facets_server.runtime.metrics_server import MetricsServer


async def main() -> None:
    """Runs the gateway until standard input ends."""
    order = json.loads(sys.stdin.buffer.readline())
    config = ServerConfig.from_dict(order["config"])
    logging.basicConfig(stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    logging.getLogger("facets_server").setLevel(config.log_level)
    registry = CollectorRegistry()
    try:
        gateway = Gateway(order["target"], config, registry=registry, token=order["token"])
    except ConfigError as error:
        sys.exit(f"facets-server: {error}")

    loop = asyncio.get_running_loop()

    def on_input() -> None:
        if not os.read(sys.stdin.fileno(), 4096):
            loop.remove_reader(sys.stdin.fileno())
            gateway.should_exit = True

    loop.add_reader(sys.stdin.fileno(), on_input)
    metrics = MetricsServer(registry, "127.0.0.1", 0)
    sys.stdout.write(json.dumps({"metrics_port": metrics.port}) + "\n")
    sys.stdout.flush()
    await gateway.serve([socket.socket(fileno=order["socket"])])


if __name__ == "__main__":
    asyncio.run(main())
