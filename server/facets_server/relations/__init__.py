"""RelationService and the models behind it."""
