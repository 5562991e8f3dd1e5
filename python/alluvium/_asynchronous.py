"""Changes in ``async for``: no thread waits for them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._alluvium import Change, Subscription


async def next_change(subscription: Subscription) -> Change:
    """The next change. Raises ``StopAsyncIteration`` after the last one."""
    loop = asyncio.get_running_loop()
    while True:
        woken: asyncio.Future[None] = loop.create_future()

        def set_woken(woken: asyncio.Future[None] = woken) -> None:
            if not woken.done():
                woken.set_result(None)

        def wake(set_woken: object = set_woken) -> None:
            try:
                loop.call_soon_threadsafe(set_woken)  # type: ignore[arg-type]
            except RuntimeError:
                # The loop has been closed, and nobody waits.
                pass

        try:
            change = subscription._poll_or(wake)
            if change is not None:
                return change
            await woken
        except StopIteration:
            raise StopAsyncIteration from None
        finally:
            subscription._forget(wake)
