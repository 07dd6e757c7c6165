"""The gateway process, started by the server: ``python -m facets_server.gateway.server``.

The first line of standard input holds its settings as JSON. When standard input ends, even because the server died, the
gateway stops. Once it accepts requests, it prints a line.
"""

import asyncio
import json
import logging
import os
import socket
import ssl
import sys
from contextlib import suppress

import uvicorn

from facets.errors import ConfigError
from facets_server.gateway.app import create_app
from facets_server.gateway.connections import limited_protocol
from facets_server.gateway.upstream import Upstream
from facets_server.runtime.config import ServerConfig

_KEEP_ALIVE_S = 20


def make_server(upstream: Upstream, config: ServerConfig) -> uvicorn.Server:
    """The HTTP server before ``upstream``, which ends after ``should_exit``; ConfigError for bad certificates."""
    http, security = config.http, config.security
    logging.getLogger("uvicorn").setLevel(logging.CRITICAL)  # its messages quote clients' input
    settings = uvicorn.Config(
        create_app(upstream, config),
        http=limited_protocol(http.max_connections, http.read_timeout_s),
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,  # clients can forge them
        server_header=False,
        timeout_keep_alive=_KEEP_ALIVE_S,
        timeout_graceful_shutdown=max(1, round(config.drain_s)),
        ssl_certfile=security.tls_certificate,
        ssl_keyfile=security.tls_key,
        ssl_ca_certs=None if security.tls_client_ca is None else str(security.tls_client_ca),
        ssl_cert_reqs=ssl.CERT_NONE if security.tls_client_ca is None else ssl.CERT_REQUIRED,
    )
    try:
        settings.load()
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(f"the certificates of the gateway cannot be used: {error}") from error
    return uvicorn.Server(settings)


async def main() -> None:
    """Runs the gateway until standard input ends."""
    order = json.loads(sys.stdin.buffer.readline())
    config = ServerConfig(**order["config"])
    logging.basicConfig(stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    logging.getLogger("facets_server").setLevel(config.log_level)
    upstream = Upstream(order["target"])
    try:
        server = make_server(upstream, config)
    except ConfigError as error:
        sys.exit(f"facets-server: {error}")

    loop = asyncio.get_running_loop()

    def on_input() -> None:
        if not os.read(sys.stdin.fileno(), 4096):
            loop.remove_reader(sys.stdin.fileno())
            server.should_exit = True

    loop.add_reader(sys.stdin.fileno(), on_input)
    with suppress(BrokenPipeError):  # the server is gone: standard input has ended
        os.write(sys.stdout.fileno(), b"ready\n")
    await server.serve([socket.socket(fileno=order["socket"])])
    await upstream.close()


if __name__ == "__main__":
    asyncio.run(main())
