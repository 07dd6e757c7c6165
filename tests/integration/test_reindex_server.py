"""Moving a collection to another model, with a real server process that is killed on the way."""

import os
import threading

import grpc
import pytest
from facets_client import FacetsClient
from facets_client.generated.types import Document
from facets_proto.v1 import documents_pb2, documents_pb2_grpc
from server_process import TOY_WORDS, make_toy_checkpoint

pytestmark = pytest.mark.skipif(bool(os.environ.get("FACETS_TARGET")), reason="needs server processes of its own")

NUM_DOCUMENTS = 3000


def text_of(number):
    words = [TOY_WORDS[number % 7], TOY_WORDS[7 + number // 7 % 50], TOY_WORDS[number // 350 % 50]]
    return " ".join([*words, *(TOY_WORDS[(number * (k + 3) + k) % len(TOY_WORDS)] for k in range(20))])


def documents(*numbers, prefix=""):
    return [Document(f"{number:05}", prefix + text_of(number), {"number": number}) for number in numbers]


@pytest.mark.slow
def test_collection_moves_to_another_model_though_the_server_is_killed(spawn, toy_model, tmp_path):
    wide = make_toy_checkpoint(tmp_path / "wide", name="wide", num_facets=6, seed=9)
    both = ["--model", str(wide)]
    expected = {document.id: document.text for document in documents(*range(NUM_DOCUMENTS))}
    server = spawn(arguments=both)
    with FacetsClient(server.target) as client:
        client.create_collection("docs", model="toy")
        for _ in client.upsert_stream("docs", documents(*range(NUM_DOCUMENTS)), batch_size=500):
            pass
        stub = documents_pb2_grpc.CollectionServiceStub(server.channel)
        request = documents_pb2.ReindexCollectionRequest(name="docs", model="wide")
        encoded = 0
        while not encoded:
            step = stub.ReindexCollection(request, timeout=0.5)  # works half of that
            assert not step.done
            encoded = step.num_encoded
        assert encoded < NUM_DOCUMENTS
        client.add(documents(3, prefix="cat "), collection="docs")
        client.delete_documents("docs", ["00004"])
        expected["00003"] = "cat " + expected["00003"]
        del expected["00004"]
    under_way = threading.Thread(target=_send_and_lose, args=(server, request))
    under_way.start()
    server.kill()
    under_way.join(30)

    server = spawn(arguments=both)
    with FacetsClient(server.target) as client:
        assert (client.get_collection("docs").model, client.count_documents("docs")) == ("toy", len(expected))
        assert (
            client.search("docs", [expected["00017"]], top_k=1, mode="facets", use_reader=False)[0].hits[0].score
            > 0.999
        )
        steps = list(client.reindex_collection("docs", model="wide"))
        assert steps[0].num_encoded >= encoded  # goes on where it was
        moved = steps[-1].collection
        assert (moved.model, moved.num_facets, moved.num_documents) == ("wide", 6, len(expected))
        listed = client.list_documents("docs", page_size=1000, include_facets=True)
        assert {
            document.id: document.text for document in listed if document.facet_embeddings.shape[0] == 6
        } == expected
        assert (
            client.search("docs", [expected["00003"]], top_k=1, mode="facets", use_reader=False)[0].hits[0].score
            > 0.999
        )
        client.add(documents(4), collection="docs")
        assert client.count_documents("docs") == NUM_DOCUMENTS


def _send_and_lose(server, request):
    stub = documents_pb2_grpc.CollectionServiceStub(server.channel)
    with pytest.raises(grpc.RpcError):
        stub.ReindexCollection(request, timeout=60)
