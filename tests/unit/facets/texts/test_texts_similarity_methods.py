"""The proto and the client have the similarity methods of the library."""

from typing import get_args

from facets_client.generated.types import Method
from facets_proto.v1 import texts_pb2

from facets.texts.similarity_methods import SimilarityMethod


def test_the_proto_and_the_client_have_the_methods_of_the_table() -> None:
    assert texts_pb2.SimilarityMethod.keys()[1:] == [f"SIMILARITY_METHOD_{method.name}" for method in SimilarityMethod]
    assert get_args(Method) == tuple(SimilarityMethod)
