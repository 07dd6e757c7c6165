"""CollectionService and DocumentService: storing, streaming in and searching documents."""
