"""The OpenAPI description has every route and the comments of the protos."""

import json
import re

from facets_client.core.channel import rpcs
from facets_server.gateway.openapi import openapi
from server_gateway_fakes import browser


def test_every_described_route_exists():
    client = browser().client
    description = client.get("/openapi.json").json()
    assert description["openapi"] == "3.1.0"
    assert {*rpcs(), "/v1/embeddings", "/embed", "/rerank", "/readyz"} <= set(description["paths"])
    for path, methods in description["paths"].items():
        method = next(iter(methods)).upper()
        reply = client.put(path)
        assert (reply.status_code, method in reply.headers["allow"]) == (405, True), path


def test_every_reference_resolves():
    names = re.findall(r'"#/components/schemas/([^"]+)"', json.dumps(openapi()))
    assert len(names) > 50 and set(names) <= set(openapi()["components"]["schemas"])
