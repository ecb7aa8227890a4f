"""A folder → Lessons → Chunks; pure, no network."""

CHUNKER_VERSION = 2
"""How lessons are cut. Here, because whoever only asks needs nothing else of this room."""
