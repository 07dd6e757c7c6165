"""Files that commands write."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def whole_file(path: str | Path) -> Iterator[Path]:
    """Yields a temporary path beside ``path`` and renames it to ``path`` at the end; deletes it after an error."""
    target = Path(path)
    partial = target.with_name(f"{target.name}.partial")
    try:
        yield partial
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)
