"""Settings: frozen and strictly typed. Errors name the field, and the file if there is one."""

import json
import re
import tomllib
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Self, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import ErrorDetails, PydanticCustomError

from facets.errors import ConfigError

AtLeastOne = Annotated[int, Field(ge=1, lt=2**63)]
NonNegativeInt = Annotated[int, Field(ge=0, lt=2**63)]
Positive = Annotated[float, Field(gt=0)]
NonNegative = Annotated[float, Field(ge=0)]
Share = Annotated[float, Field(ge=0, le=1)]
Name = Annotated[str, Field(min_length=1)]
VectorWidth = Annotated[int, Field(ge=32, multiple_of=32)]  # vector units and FAISS need it

_SHOULD = re.compile(r"^\w+ should ")  # pydantic's "Input should be"
_USER = re.compile(r"//[^/\s\"]*@")  # user and password of an address
_BROKEN_RULE = "facets_setting"


class Settings(BaseModel):
    """Base of all settings: keywords only, no unknown fields, no conversion of types.

    A ConfigError names all settings that are unknown, missing, of another type or out of range.
    """

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", allow_inf_nan=False)

    def __init__(self, /, **values: Any) -> None:
        try:
            super().__init__(**values)
        except ValidationError as error:
            details = error.errors(include_url=False)
            raise ConfigError("; ".join(_problem(type(self), problem) for problem in details)) from error

    # Otherwise pydantic would call it for nested settings, and their errors would lack the path.
    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]

    @classmethod
    def from_toml(cls, path: Path) -> Self:
        """Settings from a TOML file; raises ConfigError."""
        try:
            values = tomllib.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise ConfigError(f"cannot read the configuration {path}: {error.strerror}") from error
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ConfigError(f"{path} is not TOML: {error}") from error
        try:
            return cls(**values)
        except ConfigError as error:
            raise ConfigError(f"{path}: {error}") from error

    def to_dict(self) -> dict[str, Any]:
        """Nested dictionaries, ready for JSON."""
        return self.model_dump()

    def replaced(self, **changes: Any) -> Self:
        """A copy with some settings changed, checked again."""
        return type(self)(**(dict(self) | changes))

    def require(self, field: str, holds: bool, rule: str) -> None:
        """Checks a rule between fields, in a validator of mode "after"."""
        if not holds:
            got = {"field": field, "rule": rule, "got": getattr(self, field)}
            raise PydanticCustomError(_BROKEN_RULE, "must be {rule}", got)


class FacetModelConfig(Settings):
    """Shape of a facet network: encoder, K input maps, facet decoder (Chang 2022, eq. 3.3, 3.4)."""

    num_facets: AtLeastOne = 10
    dim: VectorWidth = 256  # of the target space
    hidden_dim: AtLeastOne = 256
    num_heads: AtLeastOne = 4
    feedforward_dim: AtLeastOne = 512
    num_encoder_layers: AtLeastOne = 2
    num_decoder_layers: AtLeastOne = 2
    max_tokens: AtLeastOne = 128  # longer texts are cut
    cross_attention: bool = True  # whether facets attend to the words of the text

    @model_validator(mode="after")
    def _check(self) -> Self:
        heads = 2 * self.num_heads
        self.require("hidden_dim", self.hidden_dim % heads == 0, f"a multiple of 2 x num_heads ({heads})")
        return self


class SentenceEncoderConfig(Settings):
    """Shape of the encoder of passages and queries; by default MiniLM's."""

    num_layers: AtLeastOne = 6
    width: VectorWidth = 384
    num_heads: AtLeastOne = 12
    feedforward_dim: AtLeastOne = 1536
    vocabulary_size: AtLeastOne = 30522  # word pieces
    max_tokens: AtLeastOne = 512  # positions, special pieces included

    @model_validator(mode="after")
    def _check(self) -> Self:
        self.require("width", self.width % self.num_heads == 0, f"a multiple of num_heads ({self.num_heads})")
        return self


class PatternNetworkConfig(Settings):
    """Shape of the pattern network: an encoder, K facets over its states, the order of the arguments."""

    num_facets: AtLeastOne = 5  # K
    order_dim: VectorWidth = 64  # dimensions of a facet that encode the order of the arguments
    order_weight: Share = 0.15  # weight of these dimensions in the cosine of two facets
    num_heads: AtLeastOne = 6
    feedforward_dim: AtLeastOne = 768
    num_decoder_layers: AtLeastOne = 1
    max_tokens: Annotated[int, Field(ge=5)] = 32  # pieces, special ones included; longer patterns lose their middle
    encoder: SentenceEncoderConfig = SentenceEncoderConfig()

    @model_validator(mode="after")
    def _check(self) -> Self:
        heads = 2 * self.num_heads
        self.require("num_heads", self.encoder.width % heads == 0, f"half of a divisor of {self.encoder.width}")
        limit = self.encoder.max_tokens
        self.require("max_tokens", self.max_tokens <= limit, f"<= encoder.max_tokens ({limit})")
        return self

    @property
    def dim(self) -> int:
        """D, the width of a facet."""
        return self.encoder.width + self.order_dim


def _problem(cls: type[Settings], details: ErrorDetails) -> str:
    """One error: path of the field, rule, and value."""
    kind, context, value = details["type"], details.get("ctx", {}), details["input"]
    field = ".".join(map(str, details["loc"]))
    if kind == "extra_forbidden":
        names = list(_section(cls, details["loc"]).model_fields)
        near = get_close_matches(str(details["loc"][-1]), names, n=1)
        return f"{field} is no setting" + (f": did you mean {near[0]}?" if near else f"; there are {', '.join(names)}")
    if kind == "missing":
        return f"{field} is missing"
    rule = _SHOULD.sub("must ", details["msg"]).replace("a valid tuple", "a list")
    if kind.startswith("model_"):
        rule = "must be a table of settings"
    if kind == "path_type":
        rule = "must be a path"
    if kind == _BROKEN_RULE:
        value, field = context["got"], f"{field}.{context['field']}".removeprefix(".")
    return f"{field or cls.__name__} {rule}, got {_shown(value)}"


def _section(cls: type[Settings], way: tuple[int | str, ...]) -> type[Settings]:
    """The settings class that contains the last step of a path."""
    for name in way[:-1]:
        if isinstance(name, str):  # not an index in a list of settings
            inner: Any = cls.model_fields[name].annotation
            cls = get_args(inner)[0] if get_origin(inner) is list else inner
    return cls


def _shown(value: object) -> str:
    """A value, roughly as in TOML."""
    try:
        shown = json.dumps(value.to_dict() if isinstance(value, Settings) else value, ensure_ascii=False, default=str)
    except (TypeError, ValueError):
        shown = repr(value)
    return _USER.sub("//***@", shown)[:200]
