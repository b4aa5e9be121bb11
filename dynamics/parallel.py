"""Work on all cores of this machine, in threads: compiled code releases the interpreter lock."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def on_all_cores(work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """`map(work, items)`, several items at a time.

    An error or an interrupt leaves at once: what has not begun is dropped, and what has is not
    waited for.
    """
    pool = ThreadPoolExecutor(os.cpu_count())
    try:
        yield from pool.map(work, items)
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    pool.shutdown()
