"""Page tokens of listings: opaque to callers and authenticated when they come back."""

import base64
import binascii
import hashlib
import json
from collections.abc import Sequence

from facets.errors import InvalidInputError

_MAC_BYTES = 12


def write_page_token(last: str, *, store_id: str, listing: Sequence[object]) -> str:
    """The token of the page that starts after ``last``, an id or another key, bound to its listing and store."""
    bound = json.dumps([*listing, last], default=repr).encode()
    mac = hashlib.blake2b(bound, key=store_id.encode(), digest_size=_MAC_BYTES).digest()
    return base64.urlsafe_b64encode(mac + last.encode()).decode("ascii")


def read_page_token(token: str, *, store_id: str, listing: Sequence[object]) -> str:
    """The key after which the page starts, empty for an empty token.

    Raises InvalidInputError if the token was not written for this listing.
    """
    if not token:
        return ""
    try:
        last = base64.b64decode(token.encode("ascii"), altchars=b"-_", validate=True)[_MAC_BYTES:].decode()
        is_own = token == write_page_token(last, store_id=store_id, listing=listing)
    except (UnicodeError, binascii.Error):
        is_own = False
    if not is_own:
        rule = f"must be next_page_token of the same listing and filter, got {token[:40]!r}"
        raise InvalidInputError(rule, path="page_token")
    return last
