"""Collections, documents, search and bulk indexing."""
