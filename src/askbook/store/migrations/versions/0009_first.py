"""The oldest schema that can be updated. A new database is made from `store/schema.py`."""

revision = "0009"
down_revision = None
