"""A server whose model takes a fixed time for a text on any machine: ``slow_server.py PORT DATA_DIR SECONDS``."""

import signal
import sys
import threading
from pathlib import Path

from facets_server.runtime.app import FacetsServer
from facets_server.runtime.config import BatcherConfig, ServerConfig
from facets_server.runtime.metrics import BatchMetrics
from facets_server.texts.served import ServedSentences
from prometheus_client import CollectorRegistry
from server_fakes import FakeModel

from facets.documents import CollectionEngine, EngineConfig


class SlowModel(FakeModel):
    def __init__(self, seconds: float) -> None:
        super().__init__("slow")
        self._seconds = seconds
        self._never = threading.Event()

    def encode_rows(self, rows):
        self._never.wait(self._seconds * len(rows))
        return super().encode_rows(rows)


def main(port: str, data_dir: str, seconds: str) -> None:
    config = ServerConfig(port=int(port), data_dir=Path(data_dir), batcher=BatcherConfig(max_batch_texts=1))
    registry = CollectorRegistry()
    model = ServedSentences(SlowModel(float(seconds)), config.batcher, BatchMetrics(registry))
    engine = CollectionEngine.open(config.data_dir, EngineConfig(background=False))
    server = FacetsServer([model], engine, config, registry=registry)
    stopped = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopped.set())
    server.start()
    stopped.wait()
    server.stop(0.5)
    engine.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
