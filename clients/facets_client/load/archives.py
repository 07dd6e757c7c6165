"""ZIP archives, and folders that are one input: exports of Slack."""

from collections import Counter
from functools import partial
from pathlib import Path, PurePosixPath
from zipfile import ZipFile

from facets_client.load.chats import is_slack_export, slack_conversations
from facets_client.load.rows import Items, Member, ReadOptions
from facets_client.load.source import InputError, Source


def read_zip(source: Source, options: ReadOptions) -> Items:
    """The files of an archive in the order of their names, without hidden ones; an export of Slack by conversation."""
    from facets_client.load.formats import format_of_name

    with ZipFile(source.seekable(options.limits.unpacked_bytes)) as archive:
        names = sorted(info.filename for info in archive.infolist() if not info.is_dir())
        if len(names) > options.limits.num_members:
            raise InputError(f"{source.name}: has {len(names):,} files, the limit is {options.limits.num_members:,}")
        if is_slack_export(names):
            yield from slack_conversations(names, archive.read)
            return
        skipped: Counter[str] = Counter()
        for number, name in enumerate(names, start=1):
            path = PurePosixPath(name)
            if any(part.startswith((".", "__MACOSX")) for part in path.parts if part != ".."):
                continue
            if format_of_name(name) is None:
                skipped[path.suffix.lower() or "no suffix"] += 1
            else:
                yield Member(name, partial(archive.open, name))  # type: ignore[arg-type]
            source.share_read = number / len(names)
        if skipped:
            kinds = ", ".join(f"{kind} ({number})" for kind, number in skipped.most_common(8))
            options.note(f"{source.name}: skipped files of other formats: {kinds}")


def read_slack_folder(source: Source, options: ReadOptions) -> Items:
    """The conversations of an export of Slack, whose file of users is the source."""
    path = Path(source.path).parent
    names = sorted(file.relative_to(path).as_posix() for file in path.rglob("*.json"))
    return slack_conversations(names, lambda name: (path / name).read_bytes())
