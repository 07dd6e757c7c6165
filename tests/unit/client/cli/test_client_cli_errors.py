"""How commands fail for programs and people, and the completion of the shell."""

import json
import subprocess
import sys

import grpc
import pytest
from fake_server import status_of


@pytest.mark.parametrize(
    ("args", "exit_code", "code", "field", "part"),
    [
        (["embed", "good", "REFUSE"], 2, "INVALID_ARGUMENT", "texts[1]", "texts[1]"),
        (["search", "a", "-c", "nope"], 2, "NOT_FOUND", None, "nope"),
        (["search", "a", "-c", "news", "--top-k", "x"], 2, "INVALID_ARGUMENT", "--top-k", "'--top-k'"),
        (["documents", "get", "d1", "-c", "news"], 2, "NOT_FOUND", None, "no document d1"),
        (["--target", "localhost:99999", "models"], 2, "INVALID_ARGUMENT", None, "port of 1 to 65535"),
        (["--target", "localhost:1", "--timeout-s", "1", "models"], 3, "UNAVAILABLE", None, "localhost:1"),
    ],
)
def test_with_json_an_error_is_one_object_on_standard_error(facets, args, exit_code, code, field, part):
    for given in (["--json", *args], [*args, "--json"]):
        (line,) = facets(*given, code=exit_code).stderr.splitlines()
        error = json.loads(line)["error"]
        assert (error["code"], error["exit_code"], error.get("field")) == (code, exit_code, field)
        assert part in error["message"]
    (sentence,) = facets(*args, code=exit_code).stderr.splitlines()
    assert sentence.startswith("facets: ") and part in sentence


def test_the_object_says_what_the_server_says(facets, world):
    world.faults["Score"].append(status_of(grpc.StatusCode.INTERNAL, "internal error", request_id="r-17"))
    error = json.loads(facets("--json", "similarity", "a", "b", code=4).stderr)["error"]
    assert error["request_id"] == "r-17" and "internal error" in error["message"]
    world.faults["Score"].extend([status_of(grpc.StatusCode.UNAVAILABLE, "disk", reason="STORAGE_FAILED")] * 9)
    assert facets("similarity", "a", "b", code=3).stderr.endswith("is not available: disk\n")  # and how to start one


def test_the_shell_completes_commands(environment):
    wanted = {"_FACETS_COMPLETE": "complete_bash", "COMP_WORDS": "facets recommend ", "COMP_CWORD": "2"}
    program = "import sys; sys.argv[0] = 'facets'; from facets_client.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program], env={**environment, **wanted}, capture_output=True, text=True
    )
    assert set(done.stdout.split()) >= {"authors", "citations", "papers", "bulk"}
