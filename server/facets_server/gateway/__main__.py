"""The gateway process, started by the server: ``python -m facets_server.gateway``.

The first line of standard input holds its settings as JSON. When standard input ends, even because the server died, the
gateway stops. Once it accepts requests, it prints a line.
"""

import asyncio
import json
import logging
import os
import socket
import sys

from facets.errors import ConfigError
from facets_server.gateway.server import Gateway
from facets_server.runtime.config import ServerConfig


async def main() -> None:
    """Runs the gateway until standard input ends."""
    order = json.loads(sys.stdin.buffer.readline())
    config = ServerConfig.from_dict(order["config"])
    logging.basicConfig(stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    logging.getLogger("facets_server").setLevel(config.log_level)
    try:
        gateway = Gateway(order["target"], config, token=order["token"])
    except ConfigError as error:
        sys.exit(f"facets-server: {error}")

    loop = asyncio.get_running_loop()

    def on_input() -> None:
        if not os.read(sys.stdin.fileno(), 4096):
            loop.remove_reader(sys.stdin.fileno())
            gateway.should_exit = True

    loop.add_reader(sys.stdin.fileno(), on_input)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    await gateway.serve([socket.socket(fileno=order["socket"])])


if __name__ == "__main__":
    asyncio.run(main())
