"""How well collections are searched, on folders in BEIR's layout."""
