import sys

import pytest
from facets_server.__main__ import main

import facets


def test_the_version_is_printed(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"facets-server {facets.__version__}\n"


@pytest.mark.parametrize("argument", ["--bogus", "--port=many", "stray"])
def test_wrong_usage_is_explained_without_a_traceback(capsys, argument):
    assert main([argument]) == 2
    printed = capsys.readouterr().err
    assert "Usage: facets-server" in printed and "Traceback" not in printed
    assert printed.splitlines()[-1].startswith("Error: ")  # plain text: no frame around it


def test_a_client_only_install_names_the_extra(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "faiss", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "faiss" else object())
    assert main([]) == 1
    assert capsys.readouterr().err == "facets-server: faiss not installed: pip install 'multifacet[server]'\n"
