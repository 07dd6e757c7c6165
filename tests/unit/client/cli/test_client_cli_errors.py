"""How commands fail for programs and people, and the completion of the shell."""

import json
import subprocess
import sys

import grpc
import pytest
from fake_world import status_of

PROGRAM = [sys.executable, "-c", "from facets_client.cli import main; main()"]


@pytest.mark.parametrize(
    ("args", "exit_code", "code", "field", "part"),
    [
        (["embed", "good", "REFUSE"], 2, "INVALID_ARGUMENT", "texts[1]", "texts[1]"),
        (["search", "a", "-c", "nope"], 2, "NOT_FOUND", None, "nope"),
        (["search", "a"], 2, "INVALID_ARGUMENT", "--collection", "--collection"),
        (["search", "a", "-c", "news", "--top-k", "x"], 2, "INVALID_ARGUMENT", "--top-k", "'--top-k'"),
        (["embed", "--file", "nope.txt"], 2, "INVALID_ARGUMENT", None, "No such file"),
        (["nonsense"], 2, "INVALID_ARGUMENT", None, "nonsense"),
        (["documents", "get", "d1", "-c", "news"], 2, "NOT_FOUND", None, "no document d1"),
        (["--target", "localhost:99999", "models"], 2, "INVALID_ARGUMENT", None, "port of 1 to 65535"),
        (["--target", "http://localhost:1", "models"], 2, "INVALID_ARGUMENT", None, "not be a URL"),
        (["--target", "localhost:1", "--timeout-s", "1", "models"], 3, "UNAVAILABLE", None, "localhost:1"),
        (["collections", "delete", "news"], 2, "INVALID_ARGUMENT", None, "--yes"),
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


def complete(environment, line):
    words = line.split(" ")
    wanted = {"_FACETS_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    program = "import sys; sys.argv[0] = 'facets'; from facets_client.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program], env={**environment, **wanted}, capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("facets ", {"embed", "similarity", "recommend", "index", "search", "health"}),
        ("facets se", {"search"}),
        ("facets collections ", {"list", "create", "show", "delete"}),
        ("facets recommend ", {"authors", "citations", "papers", "bulk"}),
        ("facets similarity --meth", {"--method"}),
        ("facets similarity --method s", {"sif"}),
    ],
)
def test_the_shell_completes_commands_and_options(environment, line, offered):
    assert offered <= set(complete(environment, line))
