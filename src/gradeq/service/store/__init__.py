"""Where a service keeps its journal: one SQLite file, or a PostgreSQL database for several servers."""
