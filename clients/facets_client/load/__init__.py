"""Bulk input: opens and reads common file formats, groups records into batches and processes them.

Readers raise ``InputError`` for an input that cannot be read at all; a bad row becomes a ``Rejection``.
"""
