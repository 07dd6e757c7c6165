"""The access log: a line of JSON for each call, written by a thread of its own; never a text, never a key."""

import json
import logging
import queue
import sys
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from logging.handlers import QueueHandler, QueueListener, WatchedFileHandler

from facets.errors import ConfigError
from facets_server.runtime.call_context import CallContext

__all__ = ["AccessLog"]

_MOST_WAITING = 10_000  # lines; when the disk does not keep up, further ones are lost and counted


class _Lines(QueueHandler):
    """Hands lines over without ever waiting."""

    num_lost = 0

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging calls it
        self.num_lost += 1


class _File(WatchedFileHandler):
    """Opens the file again when it was moved away (logrotate); what cannot be written is counted, not printed."""

    num_lost = 0

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging calls it
        self.num_lost += 1
        self._drop_stream()

    def close(self) -> None:
        try:
            super().close()
        except OSError:  # a full disk; the lines that it refused were counted
            self._drop_stream()

    def _drop_stream(self) -> None:
        """Forgets what the stream could not write, else it would try it again with every line; the next one opens."""
        stream, self.stream = self.stream, None
        if stream is not None:
            with suppress(OSError):
                stream.close()


class AccessLog:
    """Writes calls to a file."""

    def __init__(self, path: str) -> None:
        """Opens the file and starts the thread.

        Args:
            path: Lines are added to this file; ``"-"``: standard output.

        Raises:
            ConfigError: It cannot be written.
        """
        try:
            self._file = None if path == "-" else _File(path, encoding="utf-8")
        except OSError as error:
            raise ConfigError(f"access_log {path} cannot be written: {error.strerror}") from error
        sink: logging.Handler = self._file if self._file is not None else logging.StreamHandler(sys.stdout)
        lines: queue.Queue[logging.LogRecord] = queue.Queue(_MOST_WAITING)
        self._lines = _Lines(lines)
        self._listener = QueueListener(lines, sink)
        self._sink = sink
        self._listener.start()

    @property
    def num_lost(self) -> int:
        """Lines that could not be written."""
        return self._lines.num_lost + (0 if self._file is None else self._file.num_lost)

    def write(self, call: CallContext, code: str, reason: str, seconds: float) -> None:
        """Notes a call that has ended; does not wait."""
        line = json.dumps(_fields(call, code, reason, seconds), ensure_ascii=True, allow_nan=False)
        self._lines.handle(logging.LogRecord("access", logging.INFO, "", 0, line, None, None))

    def close(self) -> None:
        """Writes what is left and closes the file."""
        self._listener.stop()
        self._sink.close()


def _fields(call: CallContext, code: str, reason: str, seconds: float) -> Mapping[str, object]:
    fields: dict[str, object] = {
        "time": datetime.now(tz=UTC).isoformat(timespec="milliseconds"),
        "request_id": call.request_id,
        "trace_id": call.trace_id,
        "rpc": call.method,
        "status": code,
        "reason": reason,
        "caller": call.caller,
        "peer": call.peer,
        "items": call.num_items,
        "request_bytes": call.request_bytes,
        "reply_bytes": call.reply_bytes,
        "total_ms": round(seconds * 1000, 3),
        "stages_ms": {name: round(spent * 1000, 3) for name, spent in call.stages.seconds().items()},
    }
    return {name: value for name, value in fields.items() if value != ""}
