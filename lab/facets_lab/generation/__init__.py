"""Generation of text under chosen topics (Chang 2022, section 4.2.2)."""
