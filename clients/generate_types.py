"""The source of ``generated/types.py``: records with the fields and comments of the protos' messages.

A record is a frozen dataclass. Arrays are NumPy arrays, enums are the names of their values in lower case, and what may
be missing is ``None``. The tables below hold what the protos do not say.
"""

import json
import re
import textwrap
from importlib import import_module
from itertools import takewhile
from pathlib import Path

from google.protobuf.descriptor import FieldDescriptor, FileDescriptor

_PROTO_FOLDER = Path(__file__).resolve().parents[1] / "proto" / "facets_proto" / "v1"
WIDTH = 120

# Records in the order of the file: a base class and its arguments come before the record.
_RECORDS = """
    ModelVersion Timings TokenStats TruncatedDocument NearestWord Span AttendedToken FacetWords TokenAttention
    FacetMatch EncoderSettings Limits Model Backup TakenBackup ServerStatus
    Difference PairExplanation PairScore Scores
    Embeddings Explanation SummarySentence Summary Topic TextTopics
    SearchField FilterWarning Neighbours VectorReport MapTheme Collection RankedText ReindexProgress DocumentPart
    Document FoundDocuments SearchHit SearchResult SearchResults CollectionDiagnosis CollectionMap RerankedTexts
    EntityMention FacetMeeting SimilarPattern RelationScore NearRelation FacetRelations PatternScore
    EntityPair TextRelations TailMention RankedTail Entailment Relation
    Author Paper NewAuthor PaperOptions NearestPaper CandidateEvidence RankedCandidate RankedPaper Candidate
    CandidateRankings PaperRankings AddedPapers AddedAuthors FoundCandidates
""".split()
# Record -> its message, where the names differ.
_MESSAGES = {
    "AddedAuthors": "AddAuthorsResponse",
    "AddedPapers": "AddPapersResponse",
    "CandidateRankings": "RecommendAuthorsResponse",
    "CollectionDiagnosis": "DiagnoseCollectionResponse",
    "CollectionMap": "MapCollectionResponse",
    "Embeddings": "EmbedResponse",
    "Explanation": "TextExplanation",
    "FoundCandidates": "FindCandidatesResponse",
    "FoundDocuments": "GetDocumentsResponse",
    "PaperRankings": "RankPapersResponse",
    "ReindexProgress": "ReindexCollectionResponse",
    "RerankedTexts": "RerankResponse",
    "Scores": "ScoreResponse",
    "SearchResults": "SearchResponse",
    "ServerStatus": "GetServerStatusResponse",
    "TakenBackup": "TakeBackupResponse",
}
# Record -> its base class in core/drawing.py or core/rows.py.
_BASES = {
    "CandidateRankings": "Listed[tuple[RankedCandidate, ...]]",
    "Collection": "Record",
    "CollectionDiagnosis": "Record",
    "Document": "Record",
    "Embeddings": "ArrayOfFacets",
    "EntityPair": "OfPair[RelationScore]",
    "Explanation": "Drawn",
    "FoundCandidates": "Listed[tuple[Candidate, ...]]",
    "FoundDocuments": "Listed[Document]",
    "Model": "Record",
    "PairScore": "Drawn",
    "PaperRankings": "Listed[tuple[RankedPaper, ...]]",
    "Relation": "Record",
    "RerankedTexts": "Listed[RankedText]",
    "Scores": "Listed[PairScore]",
    "SearchResult": "Listed[SearchHit]",
    "SearchResults": "Listed[SearchResult]",
    "Summary": "OfSentences",
    "TextRelations": "Listed[EntityPair]",
    "TextTopics": "Listed[Topic]",
}
# Record that callers create -> number of its first fields that have no default.
_CREATED = {
    **{"Author": 1, "Document": 2, "DocumentPart": 1, "NewAuthor": 1},
    **{"Paper": 1, "PaperOptions": 0, "Span": 2, "Timings": 0},
}
# Fields without `optional` that may be missing, or mean nothing in some replies.
_MAY_LACK = """
    Collection.create_time Document.facet_embeddings Document.facet_spans Document.token_stats EmbedResponse.facet_spans
    EmbedResponse.vectors
    FacetMatch.second_span FacetWords.span GetServerStatusResponse.last_backup_time Model.encoder_settings
    PairScore.explanation
    PaperOptions.candidates RankedCandidate.evidence RankedPaper.evidence RankedPaper.position RankedText.answer
    RelationScore.meeting SearchHit.answer
""".split()
# Messages of two fields, key and value: a list of them is a dict.
_ENTRIES = {"DiskUse", "ModelQueue", "RequestCount"}
# Type -> enum, and the name of its unspecified value where callers may give it.
_ENUMS = {
    "DTypeName": ("DataType", None),
    "Method": ("SimilarityMethod", None),
    "SearchMode": ("SearchMode", None),
    "Combination": ("FacetCombination", ""),
    "EntitySource": ("EntitySource", "any"),
    "EntityType": ("EntityType", ""),
    "CandidateKind": ("CandidateKind", None),
}

_F = FieldDescriptor
_SCALARS = {
    **{_F.CPPTYPE_DOUBLE: "float", _F.CPPTYPE_FLOAT: "float", _F.CPPTYPE_BOOL: "bool"},
    **dict.fromkeys((_F.CPPTYPE_INT32, _F.CPPTYPE_INT64, _F.CPPTYPE_UINT32, _F.CPPTYPE_UINT64), "int"),
    **{_F.CPPTYPE_STRING: "str", _F.CPPTYPE_ENUM: "str"},
}
_DEFAULTS = {"float": "0.0", "int": "0", "bool": "False", "str": '""'}
_SPECIAL = {
    "facets.v1.FacetArray": "FacetsArray",
    "google.protobuf.Struct": "dict[str, object]",
    "google.protobuf.Timestamp": "datetime",
}
_HEADER = '''"""Records of the client, generated by ``python clients/generate_client.py`` from the protos.

Do not edit: change the message in the proto, or the tables of ``clients/generate_types.py``, and generate.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from facets_client.core.drawing import Drawn
from facets_client.core.rows import ArrayOfFacets, FacetsArray, Listed, OfPair, OfSentences, Record
'''


def read_comments() -> dict[str, str]:
    """Full name of a message or field -> its comment."""
    comments: dict[str, str] = json.loads((_PROTO_FOLDER / "comments.json").read_text(encoding="utf-8"))
    return comments


def generate_types() -> str:
    """The source, not formatted."""
    files: list[FileDescriptor] = [
        import_module(f"facets_proto.v1.{path.stem}_pb2").DESCRIPTOR for path in sorted(_PROTO_FOLDER.glob("*.proto"))
    ]
    messages = {name: message for file in files for name, message in file.message_types_by_name.items()}
    enums = {name: enum for file in files for name, enum in file.enum_types_by_name.items()}
    comments = read_comments()
    parts = [_HEADER]
    for name, (enum, unspecified) in _ENUMS.items():
        values = [value.name for value in enums[enum].values]
        prefix = values[0].removesuffix("UNSPECIFIED")
        names = [] if unspecified is None else [unspecified]
        names += [value.removeprefix(prefix).lower() for value in values[1:]]
        parts.append(f"{name} = Literal[{', '.join(map(repr, names))}]")
    parts += [_record_source(name, messages[_MESSAGES.get(name, name)], comments) for name in _RECORDS]
    return "\n".join(parts)


def _record_source(name: str, message, comments: dict[str, str]) -> str:
    fields = list(message.fields)
    types = [_type_of(field, is_created=name in _CREATED) for field in fields]
    # Of a reply, the fields at the end that may be missing have a default.
    first_default = _CREATED.get(name, len(types) - len(list(takewhile(_may_be_none, reversed(types)))))
    words = " ".join(re.findall("[A-Z][a-z]+", name)).capitalize()
    base = _BASES.get(name, "")
    has_repr = ", repr=False" if base.startswith(("Drawn", "Listed", "OfSentences")) else ""
    lines = [f"@dataclass(frozen=True, slots=True{has_repr})", f"class {name}{f'({base})' if base else ''}:"]
    summary, *paragraphs = re.split(r"(?<=\.) ", comments.get(message.full_name, f"{words}."), maxsplit=1)
    for text in (f'"""{summary}', *paragraphs, "Attributes:"):
        lines += [*textwrap.wrap(text, WIDTH, initial_indent="    ", subsequent_indent="    "), ""]
    lines.pop()
    for field in fields:
        text = f"{field.name}: {comments[field.full_name]}"
        lines += textwrap.wrap(text, WIDTH, initial_indent=" " * 8, subsequent_indent=" " * 12)
    lines += ['    """', ""]
    for position, (field, kind) in enumerate(zip(fields, types, strict=True)):
        lines.append(f"    {field.name}: {kind}{_default_of(kind) if position >= first_default else ''}")
    return "\n".join([*lines, "", ""])


def _type_of(field: FieldDescriptor, *, is_created: bool) -> str:
    is_optional = field.has_presence and (field.message_type is None) and field.containing_oneof is not None
    may_lack = is_optional or f"{field.containing_type.name}.{field.name}" in _MAY_LACK
    kind = _item_type(field, may_lack=may_lack)
    if field.message_type is not None and field.message_type.name in _ENTRIES:
        return f"dict[{kind.removeprefix('tuple[')}"
    if not field.is_repeated:
        if is_created:
            kind = re.sub(r"^tuple\[(.*), \.\.\.\]", r"Sequence[\1]", kind).replace("dict", "Mapping")
        return f"{kind} | None" if may_lack else kind
    kind = f"{kind} | None" if may_lack and not kind.startswith("tuple") else kind
    return f"Sequence[{kind}]" if is_created else f"tuple[{kind}, ...]"


def _item_type(field: FieldDescriptor, *, may_lack: bool) -> str:
    """The record of a message; without one a tuple of what the message holds."""
    message = field.message_type
    if message is None:
        return _SCALARS[field.cpp_type]
    if message.full_name in _SPECIAL:
        return _SPECIAL[message.full_name]
    for name in _RECORDS:
        if _MESSAGES.get(name, name) == message.name:
            return name
    inner = [_item_type(item, may_lack=False) for item in message.fields]
    if len(inner) == 1:
        return f"tuple[{inner[0]}{' | None' if may_lack else ''}, ...]"
    return f"tuple[{', '.join(inner)}]"


def _may_be_none(kind: str) -> bool:
    return kind.endswith("| None")


def _default_of(kind: str) -> str:
    if _may_be_none(kind):
        return " = None"
    if kind.startswith("Mapping"):
        return " = field(default_factory=dict)"
    return " = ()" if kind.startswith("Sequence") else f" = {_DEFAULTS[kind]}"
