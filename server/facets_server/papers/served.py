"""The served models of papers."""

from collections.abc import Sequence
from contextlib import AbstractContextManager

from facets.model.contract import ModelInfo
from facets.papers.engine import PaperEngine
from facets.papers.records import CandidateKind, Paper, PaperOptions
from facets_server.runtime.call_context import CallContext
from facets_server.runtime.fair_queue import FairLock
from facets_server.runtime.models import ServedModel, TaskModels

_WARM_UP_PAPERS = (
    Paper("A title"),
    Paper("A longer title that warms up the model", "And an abstract of one sentence, with a few words more."),
)


class ServedPapers(ServedModel[PaperEngine]):
    """A model of papers; allows one reader and one writer at a time, which do not wait for each other."""

    def __init__(self, info: ModelInfo, engine: PaperEngine) -> None:
        super().__init__(info, engine)
        self._writers = FairLock()

    def writing(self, call: CallContext) -> AbstractContextManager[PaperEngine]:
        """Like ``exclusive``, for additions."""
        return self.exclusive(call, self._writers)

    def unknown(self, kind: CandidateKind, ids_or_names: Sequence[str]) -> list[str]:
        """The given texts that are neither the id nor the name of a candidate."""
        table = self.engine.state.tables[kind]
        return [text for text in ids_or_names if text not in table.row_of_id and text not in table.rows_of_name]

    def probe(self, call: CallContext) -> None:
        """Recommends candidates for fixed papers."""
        options = PaperOptions(top_k=1, evidence=True)
        with self.exclusive(call) as engine:
            for kind, recommend in (
                (CandidateKind.AUTHORS, engine.recommend_authors),
                (CandidateKind.CITATIONS, engine.recommend_citations),
            ):
                if engine.size(kind):
                    recommend(_WARM_UP_PAPERS, options)

    def close(self) -> None:
        """Refuses further work and closes the file of the additions."""
        super().close()
        self._writers.close()
        self.engine.close()


PaperModels = TaskModels[ServedPapers]
