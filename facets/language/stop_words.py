"""Stop words of spaCy, read from its files: importing spaCy takes half a second, and one of its languages seconds."""

from collections.abc import Collection
from functools import cache
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path


@cache
def stop_words_of_spacy(code: str) -> Collection[str]:
    """The stop words of a language, by its ISO 639-1 code."""
    package = find_spec("spacy")
    if package is None or not package.submodule_search_locations:
        raise ModuleNotFoundError("No module named 'spacy'")
    path = Path(package.submodule_search_locations[0]) / "lang" / code.replace("no", "nb") / "stop_words.py"
    spec = spec_from_file_location(f"stop_words_{code}", path)
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    words: Collection[str] = module.STOP_WORDS
    return words


STOP_WORDS = frozenset(stop_words_of_spacy("en"))  # English
