"""Records of the server's state, written by hand because their fields differ from the message's."""

from dataclasses import dataclass
from datetime import datetime

from facets_client.generated.types import Backup


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """State of a server.

    Attributes:
        version: Release of the server.
        start_time: When it was started.
        num_running: Calls in progress, including this one.
        num_queued: Calls waiting for admission.
        num_streams: Open streams.
        num_waiting: Model -> texts (or calls) waiting for it.
        num_requests: Status code -> calls answered since the start.
        disk_bytes: Part of the data directory -> bytes.
        free_bytes: Bytes left on the disk; 0: not known.
        last_backup_time: Time of the last backup; None: none known to the server.
        backup_dir: Where ``take_backup`` puts backups, on the server; empty: backups are off.
        backups: The latest 20 in that folder, newest first.
        backup_keep: Number of backups kept in the folder after a new one; 0: all.
    """

    version: str
    start_time: datetime
    num_running: int
    num_queued: int
    num_streams: int
    num_waiting: dict[str, int]
    num_requests: dict[str, int]
    disk_bytes: dict[str, int]
    free_bytes: int
    last_backup_time: datetime | None
    backup_dir: str
    backups: tuple[Backup, ...]
    backup_keep: int
