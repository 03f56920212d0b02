"""One Laplace report of each user in pfl-research 0.6, in one process: the other side of `scale_rounds.py`.

    PFL_PYTHON benchmarks/pfl_laplace.py [--users 100000] [--ratings 20]

What is measured is the least that its simulation does for a user: the ratings become the user's statistics,
the local Laplace mechanism clips them and adds noise, and the aggregator adds the result up. Prints the
microseconds per user. Runs in an environment of its own, which has pfl and not dprec.
"""
# mypy: disable-error-code="import-not-found"

import argparse
import time

import numpy as np
from pfl.aggregate.base import SumAggregator
from pfl.context import UserContext
from pfl.internal.ops import numpy_ops
from pfl.internal.ops.selector import set_framework_module
from pfl.privacy.laplace_mechanism import LaplaceMechanism
from pfl.stats import MappedVectorStatistics


def main() -> None:
    """Print the microseconds of a report."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--users", type=int, default=100_000)
    arguments.add_argument("--ratings", type=int, default=20)
    chosen = arguments.parse_args()
    set_framework_module(numpy_ops)
    ratings = np.random.default_rng(0).integers(1, 6, (chosen.users, chosen.ratings)).astype(np.float64)
    mechanism = LaplaceMechanism(clipping_bound=5.0 * chosen.ratings, epsilon=1.0)
    aggregator, total = SumAggregator(), None
    started = time.perf_counter()
    for user, own in enumerate(ratings):
        context = UserContext(num_datapoints=chosen.ratings, seed=user, user_id=str(user))
        statistics = MappedVectorStatistics({"ratings": own})
        report, _ = mechanism.postprocess_one_user(stats=statistics, user_context=context)
        total = aggregator.accumulate(accumulated=total, user_stats=report)
    print(1e6 * (time.perf_counter() - started) / chosen.users)


if __name__ == "__main__":
    main()
