"""ModelService: served models, limits, state and backups of the server."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial

from facets_proto.codec import message_of, to_message
from facets_proto.v1 import models_pb2 as pb
from facets_proto.v1 import models_pb2_grpc

import facets
from facets.storage.backup import backups_in
from facets_server.runtime.admission import Admission
from facets_server.runtime.call_context import CallContext
from facets_server.runtime.config import ServerConfig
from facets_server.runtime.fair_queue import without_turn
from facets_server.runtime.metrics import CallMetrics, disk_of
from facets_server.runtime.models import AnyModel, ModelRegistry
from facets_server.runtime.requests import page_of

_MAX_LISTED_BACKUPS = 20


@dataclass(frozen=True)
class ModelService(models_pb2_grpc.ModelServiceServicer):
    """Models, limits, status and backups."""

    models: ModelRegistry
    config: ServerConfig
    admission: Admission
    metrics: CallMetrics
    start_time: datetime = field(default_factory=partial(datetime.now, tz=UTC))

    def ListModels(self, request: pb.ListModelsRequest, call: CallContext) -> pb.ListModelsResponse:
        """All models, the default first."""
        models, token = page_of(self.models.all(), request)
        return pb.ListModelsResponse(models=[self._message(model) for model in models], next_page_token=token)

    def GetModel(self, request: pb.GetModelRequest, call: CallContext) -> pb.GetModelResponse:
        """One model."""
        return pb.GetModelResponse(model=self._message(self.models.find(request.name)))

    def GetServerStatus(self, request: pb.GetServerStatusRequest, call: CallContext) -> pb.GetServerStatusResponse:
        """Load, disk and backups."""
        admission, backup_dir = self.admission, self.config.backup_dir
        disk = disk_of(self.config.data_dir)
        return message_of(
            pb.GetServerStatusResponse,
            version=facets.__version__,
            start_time=self.start_time,
            num_running=admission.permits.num_held,
            num_queued=admission.permits.num_waiting,
            num_streams=admission.streams.num_held,
            model_queues=[(model.name, model.num_waiting) for model in self.models.all()],
            request_counts=sorted(tuple(self.metrics.num_by_code.items())),
            disk_uses=disk.num_bytes,
            free_bytes=disk.free_bytes,
            last_backup_time=disk.last_backup,
            backup_dir=str(backup_dir.absolute()) if backup_dir else "",
            backup_keep=self.config.backup_keep,
            data_dir=str(self.config.data_dir.absolute()),
            backups=backups_in(backup_dir)[:_MAX_LISTED_BACKUPS] if backup_dir else [],
        )

    def TakeBackup(self, request: pb.TakeBackupRequest, call: CallContext) -> pb.TakeBackupResponse:
        """Copies the data directory into the backup folder."""
        from facets_server.runtime.upkeep import take_backup  # it imports every room

        with without_turn():  # the disk works, for one call at a time
            taken = take_backup(self.config)
        return to_message(taken, pb.TakeBackupResponse)

    def _message(self, served: AnyModel) -> pb.Model:
        limits = to_message(self.config.limits, pb.Limits, max_stream_window=self.config.admission.max_stream_window)
        return to_message(served.info, pb.Model, is_default=self.models.is_default(served), limits=limits)
