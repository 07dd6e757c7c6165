"""What follows from the table of similarity methods: proto, names of the client, documentation."""

from pathlib import Path
from typing import get_args

from facets_client.generated.types import Method
from facets_proto.v1 import texts_pb2

from facets.texts.similarity_methods import SimilarityMethod, methods_table

DOCUMENTATION = Path(__file__).parents[4] / "docs" / "use" / "similarity.md"


def test_the_proto_and_the_client_have_the_methods_of_the_table() -> None:
    assert texts_pb2.SimilarityMethod.keys()[1:] == [f"SIMILARITY_METHOD_{method.name}" for method in SimilarityMethod]
    assert get_args(Method) == tuple(SimilarityMethod)


def test_the_documentation_has_the_table() -> None:
    assert methods_table() in DOCUMENTATION.read_text(encoding="utf-8"), (
        "put what `python -c 'from facets.texts.similarity_methods import methods_table; print(methods_table())'` "
        f"prints into {DOCUMENTATION}"
    )
