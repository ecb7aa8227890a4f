"""Webhook deliveries: each is taken once, however often it is sent."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from sqlalchemy import delete

from askbook.store.database import Database
from askbook.store.schema import deliveries

KEPT = timedelta(days=30)
"""Longer than a sender retries."""


class Deliveries:
    def __init__(self, database: Database) -> None:
        self.database = database

    async def take(self, delivery_id: str) -> bool:
        """False if it was taken before."""
        now = datetime.now(UTC)
        new = self.database.insert(deliveries).values(delivery_id=delivery_id, received_at=now)
        async with self.database.writing() as connection:
            await connection.execute(delete(deliveries).where(deliveries.c.received_at < now - KEPT))
            return (await connection.execute(new.on_conflict_do_nothing())).rowcount == 1

    async def give_back(self, delivery_id: str) -> None:
        """Undo `take` after a failure, so that the sender may send it again."""
        await self.database.save(delete(deliveries).where(deliveries.c.delivery_id == delivery_id))
