"""The first schema that a step can start from. Nothing comes before it: a new database is made from `store/schema.py`."""

revision = "0009"
down_revision = None
