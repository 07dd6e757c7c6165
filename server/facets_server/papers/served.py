"""Papers behind their turns: what the server serves for the task ``papers``."""

import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from facets.errors import FacetsError
from facets.model.contract import ModelInfo
from facets.papers.engine import PaperEngine
from facets.papers.inputs import CandidateKind, Paper, PaperOptions
from facets_server.runtime.call_context import CallContext
from facets_server.runtime.fair_lock import FairLock
from facets_server.runtime.model_registry import TaskModels

__all__ = ["PaperModels", "ServedPapers"]

logger = logging.getLogger(__name__)

_FAILURES_UNTIL_UNHEALTHY = 3
_PROBE_S = 30.0
_WARM_UP_PAPERS = (
    Paper("A title"),
    Paper("A longer title that warms up the model", "And an abstract of one sentence, with a few words more."),
)


class ServedPapers:
    """One engine for papers; calls take turns at it.

    Attributes:
        engine: The library's; use it within a turn.
        info: What ModelService tells.
    """

    def __init__(self, engine: PaperEngine, info: ModelInfo) -> None:
        self.engine = engine
        self.info = info
        self._turns = FairLock()
        self._num_failures = 0

    @contextmanager
    def turn(self, call: CallContext) -> Iterator[PaperEngine]:
        """Waits for a turn at the engine and gives it back at the end.

        Raises:
            DeadlineExceededError: The deadline passed first.
            CallCancelledError: The caller cancelled first.
            NotReadyError: The server is shutting down.
        """
        with self._turns.hold(call):
            try:
                yield self.engine
            except FacetsError:
                self._num_failures = 0
                raise
            except Exception:
                self._num_failures += 1
                raise
            self._num_failures = 0

    def unknown(self, kind: CandidateKind, ids_or_names: Sequence[str]) -> list[str]:
        """Those that are neither an id nor a name of a candidate, in the given order."""
        table = self.engine.state.tables[kind]
        return [text for text in ids_or_names if text not in table.row_of_id and text not in table.rows_of_name]

    def warm_up(self) -> None:
        """Runs the engine once; raises what it raises."""
        self._run(CallContext(method="warm-up"))

    def is_healthy(self) -> bool:
        """True while the engine answers; after failures in a row it is asked with papers of our own."""
        if self._num_failures < _FAILURES_UNTIL_UNHEALTHY:
            return True
        try:
            self._run(CallContext(method="probe", deadline=time.monotonic() + _PROBE_S))
        except Exception as error:  # whatever it is: the engine does not answer
            logger.warning("model %s does not answer: %s", self.info.name, type(error).__name__)
            return False
        return True

    def close(self) -> None:
        """Refuses further turns and closes the file of the additions."""
        self._turns.close()
        self.engine.close()

    def _run(self, call: CallContext) -> None:
        options = PaperOptions(top_k=1, evidence=True)
        with self.turn(call) as engine:
            for kind, recommend in (
                (CandidateKind.AUTHORS, engine.recommend_authors),
                (CandidateKind.CITATIONS, engine.recommend_citations),
            ):
                if engine.size(kind):
                    recommend(_WARM_UP_PAPERS, options)


# What the service about papers is given.
PaperModels = TaskModels[ServedPapers]
