"""How commands fail for programs and people, and the completion of the shell."""

import json
import os
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


def test_an_unknown_document_shows_no_table(facets):
    done = facets("documents", "get", "d1", "-c", "news", code=2)
    assert done.stdout == ""
    done = facets("documents", "get", "d1", "-c", "news", "--json", code=2)
    assert json.loads(done.stdout) == {"documents": [], "missing_ids": ["d1"]}


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


def test_the_completion_can_be_shown(environment):
    shown = subprocess.run(
        [*PROGRAM, "--show-completion", "bash"],
        env={**environment, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1", "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "complete" in shown.stdout


def test_a_bad_line_of_entailment_is_named_and_the_others_are_answered(facets, tmp_path):
    lines = [
        "$ARG1 bought $ARG2\t$ARG1 owns $ARG2",
        "$ARG1 sold $ARG2",
        "",
        "$ARG1 sold $ARG2\t",
        "$ARG1 REFUSE $ARG2\t$ARG1 owns $ARG2",
        "$ARG1 met $ARG2\t$ARG1 knows $ARG2",
    ]
    (tmp_path / "pairs.tsv").write_bytes("\n".join(lines).encode() + b"\n$ARG1 \xff $ARG2\n")
    done = facets("--json", "entail", "--file", "pairs.tsv", code=1)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [answer["premise"] for answer in answers] == ["$ARG1 bought $ARG2", "$ARG1 met $ARG2"]
    assert answers[0]["reason"]
    for number, why in [
        (2, "1 fields"),
        (4, "second text"),
        (5, "refused"),
        (7, "UTF-8"),
    ]:
        assert any(f"line {number}: " in line and why in line for line in done.stderr.splitlines()), done.stderr
    shown = facets("entail", "--file", "pairs.tsv", code=1).stdout
    assert "buy, so own" in shown


def test_a_file_of_entailment_without_a_good_line_answers_nothing(facets, tmp_path):
    (tmp_path / "pairs.tsv").write_text("one\n")
    done = facets("entail", "--file", "pairs.tsv", code=1)
    assert not done.stdout.strip()
    assert "line 1" in done.stderr
