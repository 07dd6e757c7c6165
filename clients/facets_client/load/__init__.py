"""Bulk input: opens and reads common file formats, groups records into batches and processes them."""
