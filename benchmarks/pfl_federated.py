"""Rounds of federated matrix factorisation in pfl-research 0.6: the other side of `federated_clients.py`.

    PFL_PYTHON benchmarks/pfl_federated.py [--users 1000] [--items 1682] [--rank 16] [--rounds 3]

Its PyTorch model has the items' biases and factors; a user's factors begin anew on the device in every
round, as pfl keeps no state there. A device takes two full-batch steps of SGD; its change is clipped and
added up, in one process. Prints the processor microseconds per user and round. Runs in an environment of its
own, which has pfl and PyTorch and not dprec.
"""
# mypy: disable-error-code="import-not-found, no-untyped-def, misc"

import argparse
import time

import numpy as np
import torch
from pfl.aggregate.simulate import SimulatedBackend
from pfl.algorithm.base import NNAlgorithmParams
from pfl.algorithm.federated_averaging import FederatedAveraging
from pfl.data.dataset import Dataset
from pfl.data.federated_dataset import FederatedDataset
from pfl.data.sampling import get_user_sampler
from pfl.hyperparam import NNEvalHyperParams, NNTrainHyperParams
from pfl.model.pytorch import PyTorchModel
from pfl.privacy.gaussian_mechanism import GaussianMechanism
from pfl.privacy.privacy_mechanism import CentrallyAppliedPrivacyMechanism


class Factors(torch.nn.Module):
    """Items' biases and factors."""

    def __init__(self, items: int, rank: int) -> None:
        super().__init__()
        self.table = torch.nn.Parameter(0.1 * torch.randn(items, rank + 1))
        self.rank = rank

    def loss(self, items, ratings, eval=False):
        """Return the mean squared error with user factors that begin anew."""
        own = torch.ones(self.rank + 1)
        return ((self.table[items] @ own - ratings) ** 2).mean()

    def metrics(self, items, ratings):
        """Return nothing: no round is evaluated."""
        return {}


def main() -> None:
    """Print the microseconds of a user in a round."""
    arguments = argparse.ArgumentParser()
    for name, default in (("users", 1000), ("items", 1682), ("rank", 16), ("rounds", 3), ("ratings", 100)):
        arguments.add_argument(f"--{name}", type=int, default=default)
    chosen = arguments.parse_args()
    torch.set_num_threads(1)
    random = np.random.default_rng(0)
    people = [
        [
            torch.tensor(np.sort(random.choice(chosen.items, chosen.ratings, replace=False))),
            torch.tensor(random.integers(1, 6, chosen.ratings).astype(np.float32)),
        ]
        for _ in range(chosen.users)
    ]
    sampler = get_user_sampler("minimize_reuse", list(range(chosen.users)))
    data = FederatedDataset(lambda user: Dataset(people[user], user_id=str(user)), sampler)
    module = Factors(chosen.items, chosen.rank)
    model = PyTorchModel(
        module,
        local_optimizer_create=torch.optim.SGD,
        central_optimizer=torch.optim.SGD(module.parameters(), 1.0),
    )
    noise = CentrallyAppliedPrivacyMechanism(GaussianMechanism(clipping_bound=1.0, relative_noise_stddev=1.0))
    backend = SimulatedBackend(training_data=data, val_data=data, postprocessors=[noise])

    def seconds(rounds: int) -> float:
        started = time.process_time()
        FederatedAveraging().run(
            NNAlgorithmParams(
                central_num_iterations=rounds,
                evaluation_frequency=10**9,
                train_cohort_size=chosen.users,
                val_cohort_size=0,
            ),
            backend=backend,
            model=model,
            model_train_params=NNTrainHyperParams(
                local_num_epochs=2, local_learning_rate=0.1, local_batch_size=None
            ),
            model_eval_params=NNEvalHyperParams(local_batch_size=None),
            callbacks=[],
        )
        return time.process_time() - started

    first = seconds(1)
    print(1e6 * (seconds(chosen.rounds + 1) - first) / chosen.rounds / chosen.users)


if __name__ == "__main__":
    main()
