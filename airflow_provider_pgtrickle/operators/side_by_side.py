"""Work that depends on other work, several pieces at a time."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextvars import copy_context
from heapq import heapify, heappop, heappush


def side_by_side(
    order: Sequence[str],
    reads: Mapping[str, Collection[str]],
    most: int,
    work: Callable[[str], None],
    interrupted: Callable[[], None],
) -> None:
    """Call `work` for each piece after all before it in `order` that it reads, up to `most` pieces at a time.

    What comes first in `order` begins first. An error of a piece ends it: nothing begins any more, and it is raised
    when what has begun is done. `interrupted` is called where the waiting is interrupted, so that what has begun ends.
    """
    position = {piece: number for number, piece in enumerate(order)}
    waits = {piece: {read for read in reads[piece] if position.get(read, number) < number}
             for piece, number in position.items()}  # fmt: skip
    readers: dict[str, list[str]] = {piece: [] for piece in order}
    for piece, awaited in waits.items():
        for read in awaited:
            readers[read].append(piece)
    ready = [number for piece, number in position.items() if not waits[piece]]
    heapify(ready)

    def settle(piece: str) -> None:
        for reader in readers[piece]:
            waits[reader].discard(piece)
            if not waits[reader]:
                heappush(ready, position[reader])

    if most <= 1 or len(order) <= 1:
        while ready:
            piece = order[heappop(ready)]
            work(piece)
            settle(piece)
        return
    with ThreadPoolExecutor(min(most, len(order)), thread_name_prefix="pgtrickle") as threads:
        running: dict[Future[None], str] = {}
        errors: list[BaseException] = []
        while running or (ready and not errors):
            while ready and len(running) < most and not errors:
                piece = order[heappop(ready)]
                running[threads.submit(copy_context().run, work, piece)] = piece
            try:
                done, _ = wait(running, return_when=FIRST_COMPLETED)
            except BaseException:
                interrupted()
                raise
            for future in done:
                piece = running.pop(future)
                error = future.exception()
                if error is not None:
                    errors.append(error)
                settle(piece)
    if errors:
        raise errors[0]
