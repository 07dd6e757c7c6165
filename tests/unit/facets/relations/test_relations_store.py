"""The file of added relations: what is read is what was written, or an error; older files are taken over."""

import resource
import shutil
from pathlib import Path

import pytest
from damage import DAMAGES, flipped_copies

from facets.errors import DamagedError, DiskFullError, StorageError
from facets.relations.store import AddedRelation, AddedRelationStore

GOLDEN = Path(__file__).resolve().parents[3] / "golden"
NUM_FLIPS = 60
RELATIONS = [AddedRelation(f"relation {n}", ("$ARG1 met $ARG2", f"$ARG2 {n} $ARG1"), n / 16) for n in range(12)]


def filled(folder: Path) -> Path:
    store = AddedRelationStore(folder)
    for relation in RELATIONS:
        store.add(relation)
    store.close()
    return folder / "relations.sqlite3"


def read(folder: Path) -> list[AddedRelation]:
    store = AddedRelationStore(folder)
    try:
        return store.read()
    finally:
        store.close()


def test_no_flipped_bit_loads_as_other_relations(tmp_path: Path) -> None:
    wrong = []
    for bit in flipped_copies(filled(tmp_path), NUM_FLIPS, seed=2):
        try:
            if read(tmp_path) != RELATIONS:
                wrong.append(bit)
        except StorageError:
            pass
    assert not wrong
    assert read(tmp_path) == RELATIONS


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_file_is_no_empty_one(tmp_path: Path, damage: str) -> None:
    DAMAGES[damage](filled(tmp_path))
    try:
        found = read(tmp_path)
    except DamagedError:
        return
    assert damage in ("cut a little", "zeros in the middle") and found == RELATIONS, "the room between rows"


def test_relation_taken_away_is_gone_for_good(tmp_path: Path) -> None:
    filled(tmp_path)
    store = AddedRelationStore(tmp_path)
    store.remove("relation 3")
    store.close()
    assert read(tmp_path) == [relation for relation in RELATIONS if relation.name != "relation 3"]


def test_file_without_checksums_is_taken_over_once(tmp_path: Path) -> None:
    folder = tmp_path / "relations"
    shutil.copytree(GOLDEN / "relations_v1", folder)
    expected = [
        AddedRelation("mentor", ("$ARG1 taught $ARG2", "$ARG2 , a pupil of $ARG1"), 0.25),
        AddedRelation("caf\u00e9", ("$ARG1 drinks at $ARG2",), 0.5),
    ]
    assert read(folder) == expected
    assert not (folder / "relations.jsonl").exists()
    store = AddedRelationStore(folder)
    store.remove("mentor")
    store.close()
    shutil.copy(GOLDEN / "relations_v1" / "relations.jsonl", folder)  # as after a crash before it was set aside
    assert read(folder) == expected[1:]


def test_golden_file_is_read(tmp_path: Path) -> None:
    shutil.copytree(GOLDEN / "relations_v2", tmp_path / "relations")
    assert [relation.name for relation in read(tmp_path / "relations")] == ["mentor", "caf\u00e9"]


def test_empty_file_of_an_older_release_is_refused(tmp_path: Path) -> None:
    (tmp_path / "relations.jsonl").write_bytes(b"")
    with pytest.raises(DamagedError, match="is empty"):
        read(tmp_path)


def test_no_room_for_a_relation_is_a_full_disk(tmp_path: Path) -> None:
    store = AddedRelationStore(tmp_path)
    store.add(RELATIONS[0])
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, ((tmp_path / "relations.sqlite3-wal").stat().st_size, limits[1]))
    try:
        with pytest.raises(DiskFullError):
            store.add(RELATIONS[1])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert store.read() == RELATIONS[:1]
    store.add(RELATIONS[1])
    store.close()
    assert read(tmp_path) == RELATIONS[:2]


def test_first_relation_on_a_full_disk_is_refused_as_such(tmp_path: Path) -> None:
    store = AddedRelationStore(tmp_path / "new")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(DiskFullError):
            store.add(RELATIONS[0])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    store.add(RELATIONS[0])
    store.close()
    assert read(tmp_path / "new") == RELATIONS[:1]
