"""Backups of stores in use: one moment each, told when damaged, put back whole or not at all."""

import json
import os
import shutil
import threading
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest
from damage import DAMAGES, flip_bit
from word_stores import WORDS, add, words_in

from facets.errors import ConflictError, DamagedError, StorageError, StoreInUseError
from facets.storage.backup import back_up, check_backup, mark_verified, problems_of, remove_older, restore
from facets.storage.database import Database
from facets.storage.directory import DirectoryLock, DirectoryManifest


@pytest.fixture(scope="module")
def ten_words(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("words") / "data"
    (folder / "inner").mkdir(parents=True)
    database = Database(folder / "inner" / "words.sqlite3", WORDS)
    for number in range(10):
        add(database, number)
    database.close()
    return folder


@pytest.fixture
def data(ten_words: Path, tmp_path: Path) -> Path:
    """A directory with a store of ten words in a folder."""
    return Path(shutil.copytree(ten_words, tmp_path / "data"))


def take(data: Path, name: str = "backup") -> Path:
    back_up(data, data.with_name(name), [(data / "inner" / "words.sqlite3", WORDS.counter)])
    return data.with_name(name)


def put_back(backup: Path, target: Path) -> None:
    restore(backup, target, stores={"*/words.sqlite3": WORDS, "more/*.sqlite3": WORDS}, needed="inner/words.sqlite3")


def with_file(backup: Path, name: str, content: bytes = b"") -> None:
    """Names one more file in the manifest of a backup, with its checksum."""
    path = backup / name
    if content:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    content = path.read_bytes()
    manifest = json.loads((backup / "backup.json").read_text())
    manifest["files"][name] = {"num_bytes": len(content), "sha256": sha256(content).hexdigest(), "writes": None}
    (backup / "backup.json").write_text(json.dumps(manifest))


def modes(directory: Path) -> set[tuple[bool, int]]:
    return {(path.is_dir(), path.stat().st_mode & 0o777) for path in [directory, *directory.rglob("*")]}


def test_backup_and_what_is_restored_are_for_this_user_alone(data: Path, tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        backup = take(data)
        put_back(backup, tmp_path / "new" / "restored")
        words_in(tmp_path / "new" / "restored" / "inner" / "words.sqlite3")
    finally:
        os.umask(before)
    assert modes(backup) == modes(tmp_path / "new") == {(True, 0o700), (False, 0o600)}


@pytest.mark.parametrize("of", ["file", "folder"])
def test_links_in_a_backup_are_not_followed(data: Path, tmp_path: Path, of: str) -> None:
    backup = take(data)
    (tmp_path / "elsewhere").mkdir()
    shutil.copy(backup / "inner" / "words.sqlite3", tmp_path / "elsewhere" / "words.sqlite3")
    if of == "folder":
        (backup / "more").symlink_to(tmp_path / "elsewhere")
    else:
        (backup / "more").mkdir()
        (backup / "more" / "words.sqlite3").symlink_to(tmp_path / "elsewhere" / "words.sqlite3")
    with_file(backup, "more/words.sqlite3")
    with pytest.raises(DamagedError, match="is a link"):
        put_back(backup, tmp_path / "restored")
    with pytest.raises(DamagedError, match="is a link"):
        check_backup(backup)
    assert not (tmp_path / "restored").exists()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("authorized_keys", b"ssh-ed25519 AAAA"),
        ("more/deeper/words.sqlite3", b"SQLite format 3"),
        ("more/notes.sqlite3", b"no store at all"),
        ("more/other.sqlite3", b"SQLite format 3\0" + bytes(500)),
    ],
)
def test_what_is_no_store_is_not_restored(data: Path, tmp_path: Path, name: str, content: bytes) -> None:
    backup = take(data)
    with_file(backup, name, content)
    with pytest.raises(DamagedError, match="is no file of a backup"):
        put_back(backup, tmp_path / "restored")
    assert not (tmp_path / "restored").exists()


def test_a_backup_of_another_version_is_not_restored(data: Path, tmp_path: Path) -> None:
    newer = replace(WORDS, version=WORDS.version + 1)
    with pytest.raises(DamagedError, match=f"version {WORDS.version}, expected {newer.version}"):
        restore(take(data), tmp_path / "restored", stores={"*/words.sqlite3": newer}, needed="inner/words.sqlite3")
    assert not (tmp_path / "restored").exists()


@pytest.mark.parametrize(
    ("changes", "message"), [({"files": {}}, r"without inner/words\.sqlite3"), ({"format": 2}, "format 2, expected 1")]
)
def test_manifest_of_another_backup_is_refused(
    data: Path, tmp_path: Path, changes: dict[str, object], message: str
) -> None:
    backup = take(data)
    manifest = json.loads((backup / "backup.json").read_text())
    (backup / "backup.json").write_text(json.dumps(manifest | changes))
    with pytest.raises(StorageError, match=message):
        put_back(backup, tmp_path / "restored")
    assert not (tmp_path / "restored").exists()


def test_backup_of_a_store_that_is_written_is_one_moment(data: Path) -> None:
    database = Database(data / "inner" / "words.sqlite3", WORDS)
    stop = threading.Event()

    def write() -> None:
        for number in range(10, 100_000):
            if stop.is_set():
                return
            add(database, number)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        backups = [take(data, f"backup{number}") for number in range(3)]
    finally:
        stop.set()
        writer.join()
    database.close()
    for backup in backups:
        [file] = check_backup(backup).values()
        put_back(backup, backup.with_name(f"{backup.name}-restored"))
        found = words_in(backup.with_name(f"{backup.name}-restored") / "inner" / "words.sqlite3")
        assert found == list(range(len(found))) and file.writes == len(found) >= 10


def test_backup_takes_no_existing_folder_and_leaves_no_half(data: Path) -> None:
    take(data)
    with pytest.raises(ConflictError, match="exists"):
        take(data)
    with pytest.raises(ConflictError, match="contains inner"):
        put_back(data.with_name("backup"), data)
    with pytest.raises(DamagedError, match="missing"):
        back_up(data, data.with_name("other"), [(data / "none.sqlite3", "")])
    assert sorted(path.name for path in data.parent.iterdir()) == ["backup", "data"]


@pytest.mark.parametrize("left", ["lock", "backup.json"])
@pytest.mark.parametrize("next_name", ["half", "another"])
def test_killed_backup_is_refused_and_removed_by_the_next(
    data: Path, tmp_path: Path, next_name: str, left: str
) -> None:
    earlier = take(data)
    half = data.with_name("half.part")
    shutil.copytree(earlier / "inner", half / "inner")
    (half / left).write_text("123456\n")
    (data.with_name("mine.part")).mkdir()
    with pytest.raises(DamagedError, match=r"half\.part"):
        put_back(half, tmp_path / "restored")
    back_up(data, data.with_name(next_name), [(data / "inner" / "words.sqlite3", "")])
    assert sorted(path.name for path in data.parent.iterdir()) == sorted(["backup", "data", "mine.part", next_name])
    check_backup(earlier)
    assert not list(data.with_name(next_name).glob("lock"))


@pytest.fixture
def kept(data: Path) -> Path:
    """Backups of a store called b1 to b4, all but b3 verified, a foreign one b0, and one of another name."""
    (data / "directory.json").write_text('{"store_id": "mine"}')
    first = take(data, "b1")
    content = json.loads((first / "backup.json").read_text())
    for name in ("b0", "b2", "b3", "b4", "mine", "b1"):
        backup = data.with_name(name)
        if backup != first:
            shutil.copytree(first, backup)
        store_id = "other" if name == "b0" else content["store_id"]
        made = f"2026-05-0{name[-1]}T00:00:00+00:00" if name != "mine" else "2020-01-01T00:00:00+00:00"
        (backup / "backup.json").write_text(json.dumps(content | {"store_id": store_id, "made": made}))
        if name != "b3":
            mark_verified(backup)
    return data.parent


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name != "data")


@pytest.mark.parametrize(
    ("newest", "keep", "gone"),
    [
        ("b4", 3, []),
        ("b4", 2, ["b1"]),
        ("b4", 1, ["b1", "b2"]),
        ("b1", 1, ["b2", "b4"]),  # by a clock that was ahead
        ("b3", 1, []),  # nobody has compared it
    ],
)
def test_older_backups_go_when_a_new_one_is_verified(kept: Path, newest: str, keep: int, gone: list[str]) -> None:
    before = names_in(kept)
    assert [path.name for path in remove_older(kept / newest, "b[0-9]", keep=keep)] == gone
    assert names_in(kept) == sorted(set(before) - set(gone))


def test_backup_that_cannot_be_removed_is_told(kept: Path) -> None:
    (kept / "b1.part").mkdir()
    (kept / "b1.part" / "of somebody").touch()
    with pytest.raises(StorageError, match=r"cannot remove .*b1"):
        list(remove_older(kept / "b4", "b[0-9]", keep=1))
    check_backup(kept / "b1")


def test_backup_that_is_being_taken_is_left_alone(data: Path) -> None:
    other = data.with_name("other.part")
    other.mkdir()
    lock = DirectoryLock(other)
    take(data)
    with pytest.raises(StoreInUseError, match=r"other\.part is in use by"):
        back_up(data, data.with_name("other"), [(data / "inner" / "words.sqlite3", "")])
    lock.close()
    assert other.exists()


@pytest.mark.parametrize("name", ["backup.json", "inner/words.sqlite3"])
@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_backup_is_not_restored(data: Path, tmp_path: Path, name: str, damage: str) -> None:
    backup = take(data)
    before = (backup / name).read_bytes()
    DAMAGES[damage](backup / name)
    if (backup / name).exists() and (backup / name).read_bytes() == before:
        return
    with pytest.raises(DamagedError):
        put_back(backup, tmp_path / "restored")
    assert not (tmp_path / "restored").exists()


def test_interrupted_restore_cannot_be_opened_and_goes_on(data: Path, tmp_path: Path) -> None:
    backup, target = take(data), tmp_path / "restored"
    (target / "inner").mkdir(parents=True)
    (target / "restore-unfinished").touch()
    (target / "inner" / "words.sqlite3").write_bytes(b"half")
    with pytest.raises(StorageError, match="only partly restored"):
        DirectoryManifest(target, "inner/words.sqlite3").check()
    put_back(backup, target)
    DirectoryManifest(target, "inner/words.sqlite3").check()
    assert words_in(target / "inner" / "words.sqlite3") == list(range(10))


@pytest.mark.parametrize(
    ("name", "first", "step"),
    [
        ("inner/words.sqlite3", 8 * 8096, 197),  # rows stand at the end of their page
        ("inner/words.sqlite3-mark", 0, 31),
        ("directory.json", 0, 53),
    ],
)
def test_inspection_names_what_is_damaged_and_changes_nothing(data: Path, name: str, first: int, step: int) -> None:
    manifest = DirectoryManifest(data, "inner/words.sqlite3")
    manifest.agree("a-store")

    def problems() -> list[str]:
        return [*problems_of(data / "inner" / "words.sqlite3", WORDS), *manifest.problems()]

    assert problems() == []
    content, told = (data / name).read_bytes(), []
    for bit in range(first, min(8 * len(content), 8 * 8192), step):
        (data / name).write_bytes(content)
        flip_bit(data / name, bit)
        damaged = (data / name).read_bytes()
        told.append(len(problems()))
        assert (data / name).read_bytes() == damaged
    assert any(told) and (first > 0 or set(told) == {1})
    (data / name).unlink()
    assert [problem for problem in problems() if "missing" in problem] or first == 0
