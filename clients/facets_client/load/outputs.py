"""Files that commands write."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from facets_client.load.rows import Rejection


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


def append_rejections(path: Path, rejections: Sequence[Rejection]) -> None:
    """Appends rejections to a file as JSON lines; without any, it is not created."""
    for rejection in rejections:
        fields = {name: getattr(rejection, name) for name in ("line", "id", "reason", "message")}
        if rejection.file:
            fields = {"file": rejection.file, **fields}
        with path.open("ab") as stream:
            stream.write(json.dumps(fields).encode("ascii") + b"\n")
