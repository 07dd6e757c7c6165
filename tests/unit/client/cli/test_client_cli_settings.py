"""Profiles of the configuration file, and what is said while a server does not answer."""

import io
import socket

import pytest
from facets_client import Document, FacetsClient
from facets_client.cli import app
from facets_client.cli.settings import CommandClient, Profile, config_file, profile_names, read_profile
from facets_client.errors import FacetsClientError
from typer.testing import CliRunner


@pytest.fixture
def facets(tmp_path, monkeypatch):
    """Runs ``facets`` without a server in the environment."""
    monkeypatch.delenv("FACETS_TARGET", raising=False)
    monkeypatch.chdir(tmp_path)

    def run(*args, code=0):
        done = CliRunner().invoke(app, [str(arg) for arg in args])
        assert done.exit_code == code, (done.stdout, done.stderr, done.exception)
        assert "Traceback" not in done.stderr
        return done

    return run


def configure(text):
    file = config_file()
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file


def test_the_default_profile_names_server_and_collection(facets, server):
    configure(f'profile = "work"\n[profiles.work]\ntarget = "{server.target}"\ncollection = "news"\n')
    with FacetsClient(server.target) as client:
        client.upsert("news", [Document("d1", "text one", {})])
    assert "d1" in facets("search", "text").stdout
    assert "d1" in facets("documents", "list").stdout
    assert "news" in facets("collections", "show", "news").stdout


@pytest.mark.parametrize("place", ["before", "behind", "environment"])
def test_a_profile_is_chosen_by_name(facets, server, monkeypatch, place):
    configure(f'[profiles.far]\ntarget = "localhost:1"\n[profiles.near]\ntarget = "{server.target}"\n')
    if place == "environment":
        monkeypatch.setenv("FACETS_PROFILE", "near")
    given = {"before": ["--profile", "near", "models"], "behind": ["models", "--profile", "near"]}
    assert "fake" in facets(*given.get(place, ["models"])).stdout


def test_options_and_environment_win_over_a_profile(facets, server, monkeypatch):
    configure('profile = "far"\n[profiles.far]\ntarget = "localhost:1"\ncollection = "none-there"\n')
    facets("--target", server.target, "models")
    monkeypatch.setenv("FACETS_TARGET", server.target)
    facets("models")
    facets("--profile", "far", "documents", "count", "-c", "news")


def test_the_key_of_a_default_profile_is_not_sent_to_another_server():
    configure('profile = "work"\n[profiles.work]\ntarget = "a.example"\napi_key = "secret"\n')
    assert read_profile(None).api_key == "secret"
    assert read_profile(None, is_elsewhere=True) == Profile()
    assert read_profile("work", is_elsewhere=True).api_key == "secret"


def test_files_of_a_profile_lie_beside_the_configuration():
    file = configure('[profiles.work]\napi_key_file = "work.key"\nca_cert = "company.pem"\ntls = true\ntimeout_s = 5\n')
    (file.parent / "work.key").write_text("secret\n")
    found = read_profile("work")
    assert (found.api_key, found.ca_cert, found.tls, found.timeout_s) == (
        "secret",
        file.parent / "company.pem",
        True,
        5,
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("profile = ", "is not TOML"),
        ("\udcff", "is not TOML"),
        ('target = "a"\n', "expected profile and [profiles.NAME], got target"),
        ("profile = 3\n", "profile must be a name, got 3"),
        ('profiles = "work"\n', "profiles must be tables"),
        ('profile = "x"\n[profiles.work]\n', "no profile 'x'"),
        ('profile = "w"\n[profiles.w]\nhost = "a"\n', "has 'host', expected target, api_key"),
        ('profile = "w"\n[profiles.w]\ntls = "yes"\n', "tls of profile 'w' must be true or false, got 'yes'"),
        ('profile = "w"\n[profiles.w]\ntimeout_s = true\n', "timeout_s of profile 'w' must be a number, got True"),
        ('profile = "w"\n[profiles.w]\ntarget = 7\n', "target of profile 'w' must be a string, got 7"),
        ('profile = "w"\n[profiles.w]\napi_key = "a"\napi_key_file = "b"\n', "expected one of them"),
        ('profile = "w"\n[profiles.w]\napi_key_file = "no.key"\n', "no.key: No such file"),
        ('profile = "w"\n[profiles.w]\nca_cert = "no.pem"\n', "no.pem: No such file"),
        ('profile = "w"\n[profiles.w]\ntarget = "http://a"\n', "not be a URL"),
    ],
)
def test_a_wrong_file_is_one_sentence(facets, text, said):
    file = config_file()
    file.parent.mkdir(parents=True)
    file.write_bytes(text.encode("utf-8", "surrogateescape"))
    (line,) = facets("health", code=2).stderr.splitlines()
    assert line.startswith("facets: ") and said in line


def test_a_profile_that_nobody_has_is_named_with_those_that_are_there(facets):
    configure("[profiles.home]\n[profiles.work]\n")
    for command in ("health", "doctor"):
        (line,) = facets("--profile", "wrok", command, code=2).stderr.splitlines()
        assert "no profile 'wrok'" in line and "home, work" in line


def test_names_of_profiles_are_completed():
    configure("[profiles.work]\n[profiles.home]\n")
    assert profile_names() == ["home", "work"]
    configure("no toml")
    assert profile_names() == []


def test_a_wait_says_where_how_long_and_until_when_and_goes_with_the_answer():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        target = f"127.0.0.1:{silent.getsockname()[1]}"
        with CommandClient(target, timeout_s=1.2) as client:
            client.screen, client.first_s = io.StringIO(), 0.0
            with pytest.raises(FacetsClientError):
                client.models()
    first, *_, last = client.screen.getvalue().split("\r\x1b[K")[1:]
    assert first == f"facets: no answer from {target} yet, trying for 0 s of at most 1.2 s (--timeout-s)"
    assert last == ""
