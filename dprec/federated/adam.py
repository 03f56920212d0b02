"""Adam on the server: steps along the noisy means of updates, whose memory a checkpoint keeps."""

from dataclasses import dataclass, field

import numpy as np

from dprec.arrays import Floats
from dprec.federated.model import Parameters


@dataclass(eq=False)
class Adam:
    """Steps of Adam (Kingma and Ba [kingma2015], Algorithm 1), up along the mean update."""

    step_size: float
    first_moment: float
    """Decay of the mean gradient."""
    second_moment: float
    """Decay of the mean squared gradient."""
    ridge: float = 0.0
    """Pull of the parameters to 0, beside the mean update."""
    arrays: dict[str, Floats] = field(default_factory=lambda: {"taken": np.zeros(())})
    """The steps taken, and by parameter the means of gradients and of their squares."""

    def __call__(self, parameters: Parameters, update: Parameters, round_index: int) -> Parameters:
        """Return the parameters after a step."""
        taken = int(self.arrays["taken"]) + 1
        arrays = {"taken": np.array(float(taken))}
        moved = []
        for place, (old, change) in enumerate(zip(parameters, update, strict=True)):
            names = f"mean {place}", f"square {place}"
            mean, square = (self.arrays.get(name, np.zeros(())) for name in names)
            upward = change - self.ridge * old
            mean = self.first_moment * mean + (1 - self.first_moment) * upward
            square = self.second_moment * square + (1 - self.second_moment) * upward**2
            arrays.update(zip(names, (mean, square), strict=True))
            direction = mean / (1 - self.first_moment**taken)
            size = np.sqrt(square / (1 - self.second_moment**taken))
            # The least divisor keeps a step finite where every gradient is 0.
            moved.append(old + self.step_size * direction / (size + 1e-8))
        self.arrays = arrays
        return tuple(moved)
