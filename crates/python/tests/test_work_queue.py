"""Work queues."""

import os
import threading

import onbeat as ob
import pytest


def test_calls_run_in_order_on_one_thread():
    seen = []
    with ob.WorkQueue("ordered") as queue:
        futures = [queue.submit(lambda n=n: seen.append((n, threading.get_ident()))) for n in range(1000)]
        queue.flush()
        assert all(future.done() for future in futures)
    assert [n for n, _ in seen] == list(range(1000)) and len({thread for _, thread in seen}) == 1


def test_results_and_exceptions_come_back():
    with ob.WorkQueue("results") as queue:
        assert queue.submit(pow, 2, 10).result() == 1024
        with pytest.raises(ZeroDivisionError):
            queue.submit(lambda: 1 / 0).result()


def test_it_has_its_cores_and_policy():
    with ob.WorkQueue("pinned", cores=[0], policy="f:10") as queue:
        assert queue.submit(os.sched_getaffinity, 0).result() == {0}
        found = queue.submit(lambda: (os.sched_getscheduler(0), os.sched_getparam(0).sched_priority)).result()
        granted = all(one.asked == one.obtained for one in queue.obtained)
        assert found == (os.SCHED_FIFO, 10) if granted else found[0] == os.SCHED_OTHER


def test_what_cannot_be_is_an_error():
    with pytest.raises(ValueError, match="policy"):
        ob.WorkQueue("wrong", policy="fast")
    with pytest.raises((ValueError, RuntimeError), match="15"):
        ob.WorkQueue("a name of more than 15 bytes")
    with pytest.raises((ValueError, RuntimeError), match="5000"):
        ob.WorkQueue("cores", cores=[5000])
    queue = ob.WorkQueue("stopped")
    with pytest.raises(RuntimeError, match="from another thread"):
        queue.submit(queue.flush).result()
    queue.stop()
    queue.stop()
    with pytest.raises(RuntimeError, match="is stopped"):
        queue.submit(print)


def test_a_queue_that_nobody_holds_finishes_its_calls():
    seen = []
    queue = ob.WorkQueue("dropped")
    for n in range(100):
        queue.submit(seen.append, n)
    del queue
    assert seen == list(range(100))
