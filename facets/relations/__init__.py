"""Relations: patterns, the relations they express, and which pattern entails which (Chang 2022, section 3.3)."""
