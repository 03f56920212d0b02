"""One simulation at a time in a process, whose identity is Flower's."""

import threading

from flwr.supercore.task_identity import TaskIdentity

from clients.app import client_app
from simulation.engine.local_grid import LocalGrid
from simulation.engine.runtime import identity_restored


def test_a_simulation_in_another_thread_waits() -> None:
    order = []

    def another() -> None:
        with identity_restored():
            order.append("another")

    with identity_restored():
        thread = threading.Thread(target=another)
        thread.start()
        thread.join(0.2)
        order.append("first")
    thread.join()
    assert order == ["first", "another"]


def test_a_simulation_inside_another_gives_the_identity_back() -> None:
    with identity_restored():
        TaskIdentity.run_id = 7
        with identity_restored():
            LocalGrid(client_app(), 1)
            assert TaskIdentity.run_id == 1
        assert TaskIdentity.run_id == 7
