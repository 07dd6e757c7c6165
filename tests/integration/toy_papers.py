"""Made-up papers of three topics, and a tiny checkpoint trained on them."""

import json
import random
from pathlib import Path

TOPICS = {
    "sea": ("boat ship river water fish wave harbour sail captain storm").split(),
    "music": ("song piano guitar opera melody rhythm choir drum violin concert").split(),
    "war": ("king queen army castle sword battle treaty knight siege crown").split(),
}
NUM_PAPERS = 90
AUTHORS_A_TOPIC = 4


def toy_papers() -> list[dict[str, object]]:
    """``NUM_PAPERS`` papers, each on one topic, written and cited within it."""
    choose = random.Random(3)
    names = list(TOPICS)
    papers: list[dict[str, object]] = []
    for i in range(NUM_PAPERS):
        topic = names[i % len(names)]
        words = TOPICS[topic]
        authors = [f"{topic.title()} {'ABCD'[k]}" for k in sorted(choose.sample(range(AUTHORS_A_TOPIC), 2))]
        papers.append(
            {
                "id": f"{topic}-{i:02}",
                "title": f"{' '.join(choose.choices(words, k=4))} {topic}",
                "abstract": " ".join(choose.choices(words, k=20)),
                "authors": [authors[0], {"name": authors[1], "id": authors[1].replace(" ", "-").lower()}],
                "cited_by": [f"cite-{topic}-{k}" for k in choose.sample(range(3), 2)],
                "year": 2000 + i // 9,
            }
        )
    return papers


def write_toy_papers(path: Path) -> Path:
    path.write_text("".join(json.dumps(paper) + "\n" for paper in toy_papers()), encoding="utf-8")
    return path


def make_toy_papers_checkpoint(folder: Path) -> Path:
    """A seeded, untrained network whose facets are projected word averages; an author is the mean of the papers."""
    import numpy as np
    import torch

    from facets.config import FacetModelConfig, PaperTrainingConfig
    from facets.model.checkpoint import CheckpointConfig
    from facets.model.paper_model import PaperModel
    from facets.model.paper_network import PaperNetwork
    from facets.model.paper_tables import KnownPapers, PaperTables, ScoringSettings
    from facets.tasks.recommendation_files import read_papers
    from facets.training.papers_data import build_corpus, build_vocabulary
    from facets.words.vectors import WordVectors

    folder.mkdir(parents=True)
    data = write_toy_papers(folder / "papers.jsonl")
    shape = FacetModelConfig(num_facets=2, dim=32, hidden_dim=32, num_heads=2, feedforward_dim=64, max_tokens=48)
    config = PaperTrainingConfig(
        data=str(data), word_dim=32, min_word_count=1, min_cited_papers=2, input_tokens=48, model=shape
    )
    papers = read_papers(data)
    vocabulary = build_vocabulary(papers, min_count=1, max_words=1000)
    corpus = build_corpus(papers, vocabulary, config)
    random = np.random.default_rng(5)
    words = WordVectors(vocabulary, random.normal(size=(len(vocabulary), 32)).astype(np.float32))
    torch.manual_seed(5)
    network = PaperNetwork(shape, torch.from_numpy(words.unit_vectors), torch.from_numpy(vocabulary.probabilities))
    network.start_from(torch.eye(32))
    known = KnownPapers(
        ids=[paper.id for paper in papers],
        titles=[paper.title for paper in papers],
        years=np.array([paper.year or 0 for paper in papers], np.int32),
        rows=corpus.rows,
        offsets=corpus.offsets,
        column_ids={str(kind): pairs.ids for kind, pairs in corpus.interactions.items()},
        column_names={str(kind): pairs.names for kind, pairs in corpus.interactions.items()},
        pairs={
            str(kind): _sorted(np.stack([pairs.papers, pairs.columns], axis=1))
            for kind, pairs in corpus.interactions.items()
        },
    )
    settings = ScoringSettings(
        facet_weights={"authors": 0.5, "citations": 0.5}, document_modes={"authors": "max", "citations": "max"}
    )
    none = PaperTables({kind: np.zeros((0, 32), np.float32) for kind in known.pairs}, {})
    model = PaperModel(
        network, words, config=CheckpointConfig(name="toy-papers", task="papers", model=shape),
        tables=none, settings=settings, papers=known,
    )  # fmt: skip
    facets = model.encode_papers(model.paper_rows([p.title for p in papers], [p.abstract for p in papers])).facets
    model.tables = PaperTables(
        vectors={
            kind: np.stack([facets[pairs[pairs[:, 1] == j, 0]].mean(axis=(0, 1)) for j in range(pairs[:, 1].max() + 1)])
            for kind, pairs in known.pairs.items()
        },
        references={kind: facets[:16] for kind in known.pairs},
    )
    model.save(folder)
    return folder


def _sorted(pairs):  # type: ignore[no-untyped-def]
    return pairs[pairs[:, 1].argsort(kind="stable")]
