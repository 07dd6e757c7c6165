"""Sends mutated calls to a running server and judges what comes back."""

import base64
import random
import time
from collections import Counter, deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
from facets_proto.v1 import models_pb2, models_pb2_grpc
from google.protobuf.descriptor import Descriptor

from benchmarks.fuzz.calls import Rpc, rpcs
from benchmarks.fuzz.mutation import Mutator, fields_of

_AT_ONCE = 6
_UNCHANGED, _GARBLED = 0.08, 0.12  # shares of the calls
_RENEW_EVERY = 60  # calls; then what the valid ones are about is made again
_SETTLE_S = 30.0
# A server's own fault, or no answer at all; gRPC itself answers UNKNOWN where a handler fails.
_BAD = {grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN, grpc.StatusCode.DEADLINE_EXCEEDED}


class Fuzzer:
    """Fuzzes one server.

    Attributes:
        codes: Rpc -> how its calls ended.
        failures: What should not have come back, with the bytes that brought it about.
        sent: Fields that were set in a call.
        accepted: Those that were set in a call that ended well.
        slowest_s: Longest time of a call.
    """

    def __init__(self, target: str, *, seed: int, timeout_s: float, pid: int | None = None) -> None:
        self._rng = random.Random(seed)
        self._mutator = Mutator(self._rng)
        self._timeout_s = timeout_s
        self._pid = pid
        self._channel = grpc.insecure_channel(
            target, [("grpc.enable_retries", 0), ("grpc.max_receive_message_length", -1)]
        )
        self._rpcs = rpcs()
        self.codes: dict[str, Counter[str]] = {rpc.name: Counter() for rpc in self._rpcs}
        self.failures: list[str] = []
        self.sent: set[str] = set()
        self.accepted: set[str] = set()
        self.slowest_s = 0.0
        self.most_rss_bytes = self.first_rss_bytes = self._rss()

    def run(self, num_calls: int, *, seconds: float = float("inf")) -> int:
        """Makes so many calls, some at a time, or as many as fit into the time; returns how many."""
        until, number = time.monotonic() + seconds, 0
        waiting: deque[Future[None]] = deque()
        with ThreadPoolExecutor(_AT_ONCE) as workers:
            while number < num_calls and time.monotonic() < until:
                if number % _RENEW_EVERY == 0:
                    self._renew()
                waiting.append(workers.submit(self._call, *self._made()))
                if len(waiting) > 2 * _AT_ONCE:
                    waiting.popleft().result()
                number += 1
            for future in waiting:
                future.result()
        self._settle()
        return number

    def coverage(self) -> dict[str, object]:
        """How many of the fields of all requests were sent, and accepted; which never were."""
        known: set[str] = set()
        for rpc in self._rpcs:
            _collect(rpc.input_type, known, set())
        return {
            "fields": len(known),
            "sent": len(known & self.sent),
            "accepted": len(known & self.accepted),
            "never_sent": sorted(known - self.sent),
        }

    def close(self) -> None:
        """Closes the connection."""
        self._channel.close()

    def _made(self) -> tuple[Rpc, list[bytes], set[str]]:
        """A call: valid, changed, or changed beyond what a message may be."""
        rpc = self._rng.choice(self._rpcs)
        messages = [type(message).FromString(message.SerializeToString()) for message in rpc.valid]
        kind = self._rng.random()
        if kind > _UNCHANGED:
            self._mutator.mutate(self._rng.choice(messages))
        fields = set().union(*map(fields_of, messages))
        data = [message.SerializeToString() for message in messages]
        if kind > 1 - _GARBLED:
            place = self._rng.randrange(len(data))
            data[place] = self._mutator.garble(data[place])
        return rpc, data, fields

    def _call(self, rpc: Rpc, data: Sequence[bytes], fields: set[str]) -> None:
        started = time.monotonic()
        code, details = self._send(rpc, data)
        seconds = time.monotonic() - started
        self.slowest_s = max(self.slowest_s, seconds)
        self.most_rss_bytes = max(self.most_rss_bytes, self._rss())
        self.codes[rpc.name][code.name] += 1
        self.sent |= fields
        if code is grpc.StatusCode.OK:
            self.accepted |= fields
        if code in _BAD or (code is grpc.StatusCode.UNAVAILABLE and "Connect" in details):
            sample = [base64.b64encode(one).decode()[:2_000] for one in data]
            self.failures.append(f"{rpc.name}: {code.name} after {seconds:.1f} s, {details!r}: {sample}")

    def _send(self, rpc: Rpc, data: Sequence[bytes]) -> tuple[grpc.StatusCode, str]:
        try:
            if rpc.is_stream:
                for _ in self._channel.stream_stream(rpc.path)(iter(data), timeout=self._timeout_s):
                    pass
            else:
                self._channel.unary_unary(rpc.path)(data[0], timeout=self._timeout_s)
        except grpc.RpcError as error:
            failed: Any = error
            return failed.code(), failed.details() or ""
        return grpc.StatusCode.OK, ""

    def _renew(self) -> None:
        by_name = {rpc.name: rpc for rpc in self._rpcs}
        create = type(by_name["CollectionService/CreateCollection"].valid[0])(name="fuzz")  # type: ignore[call-arg]
        self._send(by_name["CollectionService/CreateCollection"], [create.SerializeToString()])
        upsert = by_name["DocumentService/Upsert"]
        self._send(upsert, [upsert.valid[0].SerializeToString()])

    def _settle(self) -> None:
        """Nothing may be under way any more: no call hangs."""
        stub = models_pb2_grpc.ModelServiceStub(self._channel)
        until = time.monotonic() + _SETTLE_S
        while True:
            try:
                status = stub.GetServerStatus(models_pb2.GetServerStatusRequest(), timeout=self._timeout_s)
            except grpc.RpcError as error:
                self.failures.append(f"the server does not answer any more: {error}")
                return
            if (status.num_running, status.num_queued, status.num_streams) == (1, 0, 0):
                return
            if time.monotonic() > until:
                self.failures.append(f"calls are under way {_SETTLE_S:g} s after the last one: {status}")
                return
            time.sleep(0.2)

    def _rss(self) -> int:
        """Memory of the server; 0: not known."""
        if self._pid is None:
            return 0
        lines = Path(f"/proc/{self._pid}/status").read_text().splitlines()
        return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS:")), 0)


def _collect(message: Descriptor, found: set[str], seen: set[str]) -> None:
    if message.full_name in seen:
        return
    seen.add(message.full_name)
    for field in message.fields:
        if not message.GetOptions().map_entry:
            found.add(field.full_name)
        if field.message_type is not None:
            _collect(field.message_type, found, seen)
