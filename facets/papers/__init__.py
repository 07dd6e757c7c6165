"""Papers: who would write and who would cite a paper nobody has cited yet (Chang 2022, section 3.4)."""
