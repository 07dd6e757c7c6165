"""Commands for texts."""
