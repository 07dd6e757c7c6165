"""How often a model failed since it last answered."""

__all__ = ["Failures"]

_MANY = 3


class Failures:
    """A count that whoever runs the model keeps; a lost update between threads does no harm."""

    def __init__(self) -> None:
        self._num = 0

    def count(self) -> None:
        """The model failed."""
        self._num += 1

    def forget(self) -> None:
        """The model answered."""
        self._num = 0

    def are_many(self) -> bool:
        """True when the last calls failed one after the other."""
        return self._num >= _MANY
