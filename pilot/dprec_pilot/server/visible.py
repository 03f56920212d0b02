"""What the server of a pilot sees of its users, and the budget of a run, for whoever prepares it."""

from dprec_pilot.device.folder import Agreement


def in_words(agreement: Agreement) -> str:
    """Return in one line what the server sees, and the epsilon of a run or that there is none."""
    return f"the server sees {_seen(agreement)}; {_budget(agreement)}"


def _seen(agreement: Agreement) -> str:
    protocol = agreement.protocol
    noisy = protocol.privacy is not None
    if protocol.masks:
        return f"sums over devices that mask what they send, {'with' if noisy else 'without'} noise"
    if noisy and protocol.hides_rated_items:
        return "reports with noise, which hide what was rated and how"
    if agreement.scale.implicit:
        return "each user's set of items, in clear"
    if not protocol.sends_values:
        return "which items each user rated, in clear, and nothing of how"
    if noisy:
        return "which items each user rated, in clear, and how, with noise"
    return "what each user rated, and how, in clear"


def _budget(agreement: Agreement) -> str:
    privacy, repeated = agreement.protocol.privacy, agreement.repeated
    if privacy is None:
        return "no epsilon: nothing protects what it sees"
    delta = "" if privacy.composition == "sum" else f" with delta {privacy.delta:g}"
    if repeated is not None:
        # Runs repeat the answers, each of which is at the budget.
        epsilon = repeated.per_rating * privacy.epsilon
        return f"epsilon {epsilon:g} per {privacy.per}{delta} in all runs together, as answers repeat"
    return f"epsilon {privacy.epsilon:g} per {privacy.per}{delta} in each run"
