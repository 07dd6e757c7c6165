"""Which failed calls are retried, and after which pauses."""

import random
from collections.abc import Iterator

# Only transient failures of calls that had no effect (AIP-194). gRPC waits longer when the server asks for it
# (grpc-retry-pushback-ms) and stops at the deadline of the call. A CANCELLED that the client did not cause comes from
# gRPC itself or a proxy that gave up a call before a busy server had begun it.
RETRY_POLICY: dict[str, object] = {
    "maxAttempts": 5,  # the most that gRPC allows
    "initialBackoff": "0.2s",
    "maxBackoff": "5s",
    "backoffMultiplier": 2.5,
    "retryableStatusCodes": ["UNAVAILABLE", "RESOURCE_EXHAUSTED", "CANCELLED"],
}


def retry_pauses() -> Iterator[float]:
    """Seconds before each further attempt, as ``RETRY_POLICY`` says: for streams, which gRPC does not retry."""
    first, longest = (float(str(RETRY_POLICY[name])[:-1]) for name in ("initialBackoff", "maxBackoff"))
    for attempt in range(int(str(RETRY_POLICY["maxAttempts"])) - 1):
        yield min(first * float(str(RETRY_POLICY["backoffMultiplier"])) ** attempt, longest) * random.uniform(0.8, 1.2)
