"""Long inputs: files as people have them, opened, read, cut into batches and worked through."""
