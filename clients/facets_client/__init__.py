"""Client of a Facets server: strings and NumPy in, plain dataclasses out.

Importing this package reads and sends nothing; the connection opens with the first call.
"""

from facets_client.client import AsyncFacetsClient, FacetsClient
from facets_client.core.channel import TlsConfig
from facets_client.core.rows import Results
from facets_client.errors import (
    AlreadyExistsError,
    DeadlineExceededError,
    FacetsClientError,
    FailedPreconditionError,
    FieldViolation,
    InvalidArgumentError,
    NotFoundError,
    OddFilterWarning,
    OverloadedError,
    PermissionDeniedError,
    ServerError,
    UnauthenticatedError,
    UnavailableError,
)
from facets_client.generated.types import Author, Document, NewAuthor, Paper, PaperOptions

__all__ = [
    "AlreadyExistsError",
    "AsyncFacetsClient",
    "Author",
    "DeadlineExceededError",
    "Document",
    "FacetsClient",
    "FacetsClientError",
    "FailedPreconditionError",
    "FieldViolation",
    "InvalidArgumentError",
    "NewAuthor",
    "NotFoundError",
    "OddFilterWarning",
    "OverloadedError",
    "Paper",
    "PaperOptions",
    "PermissionDeniedError",
    "Results",
    "ServerError",
    "TlsConfig",
    "UnauthenticatedError",
    "UnavailableError",
]
