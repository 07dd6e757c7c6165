"""Two real servers on one PostgreSQL: a stream that begins at one goes on at the other."""

from contextlib import ExitStack
from pathlib import Path

import postgres_server
from facets_client import Document, FacetsClient
from server_process import ServerProcess


def test_a_stream_goes_on_at_the_other_server(toy_model: Path, tmp_path: Path) -> None:
    url = postgres_server.new_server(fsync=True).new_database()  # syncs to disk, as those do that people trust
    documents = [Document(f"{n:05}", f"the cat sat on road {n}", {"number": n}) for n in range(30)]
    with ExitStack() as stack:
        started = [
            ServerProcess(tmp_path / name, toy_model, environment={"FACETS_SERVER_ENGINE_STORE": url})
            for name in ("one", "two")
        ]
        for server in started:
            stack.enter_context(server)
        first, second = (stack.enter_context(FacetsClient(server.target, timeout_s=60)) for server in started)
        first.create_collection("streamed")
        acks = list(first.upsert_stream("streamed", iter(documents[:20]), batch_size=5))
        token = acks[-1].resume_token
        more = list(second.upsert_stream("streamed", iter(documents[20:]), batch_size=5, resume_token=token))
        assert len(more) == 2 and second.count_documents("streamed") == 30
