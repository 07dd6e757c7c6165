"""Text that goes on under chosen topics: the conditional generator of Chang 2022, section 4.2.2."""
