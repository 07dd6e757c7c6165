"""Methods of the clients about models and the server itself."""

from facets_proto.codec import from_message
from facets_proto.v1 import models_pb2 as pb
from grpc_health.v1 import health_pb2

from facets_client.core.calls import AsyncCalls
from facets_client.core.channel import SERVICES
from facets_client.core.rows import Results
from facets_client.errors import NotFoundError
from facets_client.generated.types import Model, ServerStatus, TakenBackup

_SERVING = health_pb2.HealthCheckResponse.ServingStatus


class AsyncModelCalls(AsyncCalls):
    """Methods of ModelService and health."""

    async def models(self) -> Results[Model]:
        """All models, the default first."""
        pages = self._pages(pb.ListModelsRequest())
        return Results([from_message(model, Model) async for page in pages for model in page.models])

    async def model(self, name: str = "") -> Model:
        """One model with its limits; without a name the default model."""
        return from_message((await self._call(pb.GetModelRequest(name=name))).model, Model)

    async def status(self) -> ServerStatus:
        """State of the server: version, load, disk, last backup."""
        return from_message(await self._call(pb.GetServerStatusRequest()), ServerStatus)

    async def take_backup(self) -> TakenBackup:
        """Copies the server's data directory into its backup folder, verifies the copy and removes the oldest backups.

        FailedPreconditionError if the server has no backup folder, or keeps its documents in PostgreSQL.
        """
        return from_message(await self._call(pb.TakeBackupRequest()), TakenBackup)

    async def health(self) -> dict[str, str]:
        """Status of the server (under the empty name) and of each service, e.g. ``SERVING``."""
        statuses: dict[str, str] = {}
        for service in ("", *SERVICES):
            request = health_pb2.HealthCheckRequest(service=service)
            try:
                reply = await self._call(request)
            except NotFoundError:
                statuses[service] = "SERVICE_UNKNOWN"
            else:
                known = reply.status in _SERVING.values()
                statuses[service] = _SERVING.Name(reply.status) if known else "UNKNOWN"
        return statuses
