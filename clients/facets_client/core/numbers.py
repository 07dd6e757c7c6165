"""Numbers of the caller's as the fields of messages hold them."""

__all__ = ["finite_double", "unsigned"]


def unsigned(value: int | None, name: str, *, bits: int = 32) -> int | None:
    """Returns a number that fits an unsigned field of ``bits`` bits; None stays None.

    Raises:
        ValueError: It does not fit; the limits of the server are the server's to check.
    """
    if value is not None and not 0 <= value < 2**bits:
        raise ValueError(f"{name} must be 0 to {2**bits - 1}, got {value}")
    return value


def finite_double(value: float, name: str) -> float:
    """Returns a number as the double that messages carry.

    Raises:
        ValueError: An integer beyond every double.
    """
    try:
        return float(value)
    except OverflowError as error:
        raise ValueError(f"{name} must fit a double, got an integer of {int(value).bit_length()} bits") from error
