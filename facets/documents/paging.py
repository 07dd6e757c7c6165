"""Page tokens of document listings: opaque to callers and authenticated when they come back."""

import base64
import binascii
import hashlib
import hmac
import json

from facets.documents.filters import Filter
from facets.errors import InvalidInputError

_MAC_BYTES = 12


def write_page_token(last_id: str, *, store_id: str, collection: int, where: Filter | None) -> str:
    """The token of the page that starts after ``last_id``."""
    position = last_id.encode()
    mac = _mac(position, store_id=store_id, collection=collection, where=where)
    return base64.urlsafe_b64encode(mac + position).decode("ascii")


def read_page_token(token: str, *, store_id: str, collection: int, where: Filter | None) -> str:
    """The id after which the page starts.

    Raises:
        InvalidInputError: The token was not written for this listing.
    """
    try:
        decoded = base64.b64decode(token.encode("ascii"), altchars=b"-_", validate=True)
    except (UnicodeEncodeError, binascii.Error) as error:
        raise _invalid(token) from error
    mac, position = decoded[:_MAC_BYTES], decoded[_MAC_BYTES:]
    if not hmac.compare_digest(mac, _mac(position, store_id=store_id, collection=collection, where=where)):
        raise _invalid(token)
    return position.decode()


def _mac(last_id: bytes, *, store_id: str, collection: int, where: Filter | None) -> bytes:
    """Binds a position to its listing: store, collection and filter."""
    listing = json.dumps([collection, repr(where)])
    key = hashlib.blake2b(listing.encode(), key=store_id.encode(), digest_size=32).digest()
    return hashlib.blake2b(last_id, key=key, digest_size=_MAC_BYTES).digest()


def _invalid(token: str) -> InvalidInputError:
    rule = f"must be next_page_token of the same listing and filter, got {token[:40]!r}"
    return InvalidInputError(rule, path="page_token")
