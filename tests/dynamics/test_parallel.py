import threading
import time

import pytest

from dynamics.parallel import on_all_cores


def test_results_come_in_order():
    assert list(on_all_cores(lambda n: n**2, range(50))) == [n**2 for n in range(50)]


def test_an_error_drops_what_has_not_begun_and_waits_for_nothing():
    begun, release = [], threading.Event()

    def work(item):
        begun.append(item)
        if item == 0:
            raise KeyboardInterrupt
        release.wait(30)

    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        list(on_all_cores(work, range(1000)))
    assert time.monotonic() - started < 20 and len(begun) < 1000
    release.set()
