"""Documents from files as people have them: tables, arrays, texts, pages."""
