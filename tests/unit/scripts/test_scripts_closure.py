"""What a distribution brings is found through extras and markers, as it is installed."""

import importlib.metadata

import pytest
from test_scripts_setup import script

INSTALLED = {
    "ours": ("1.0", ["A_a>=1", 'b[x]; extra == "more"', 'c; extra == "other"', 'd; python_version < "3"']),
    "a-a": ("1.1+cpu", None),
    "b": ("2", ['a-a; extra == "x"', "ours"]),
    "multifacet": ("3", ["b"]),
}


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    def of(place: int):
        def look(name: str):
            if name not in INSTALLED:
                raise importlib.metadata.PackageNotFoundError(name)
            return INSTALLED[name][place]

        return look

    monkeypatch.setattr(importlib.metadata, "version", of(0))
    monkeypatch.setattr(importlib.metadata, "requires", of(1))


def test_extras_and_markers_are_followed() -> None:
    closure = script("closure").closure
    assert closure(["ours"]) == {"a-a": "1.1+cpu", "ours": "1.0"}
    assert closure(["ours[more]"]) == {"a-a": "1.1+cpu", "b": "2", "ours": "1.0"}


def test_an_audit_gets_other_people_s_packages_without_local_versions(capsys: pytest.CaptureFixture[str]) -> None:
    assert script("closure").main(["--others", "multifacet"]) == 0
    assert capsys.readouterr().out == "a-a==1.1\nb==2\nours==1.0\n"


def test_what_is_not_installed_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert script("closure").main(["ours[other]"]) == 1
    assert capsys.readouterr().err == "closure: c is not installed here: make install\n"
