"""The version of what dprec computes for a deployment, which devices and server have to share.

What a device answers follows from the protocol, the request, the profile and random words; what it predicts,
from what it receives. Two versions of dprec that compute any of that differently would follow the same
protocol.json and do different things: the loss that was agreed on would be that of another mechanism, reports
would be read as what they do not say, and an answer that is repeated in every run would be another one, drawn
from the same words, of which no epsilon says what both together tell. So the version is part of what devices
agree to.

It is raised by one, in the same commit, when a protocol, a request, a profile and words that were possible
before lead to another report, another loss, another reading of a report by the server, or other predictions.
It stays when what is computed is the same bits: faster, for more protocols, or with other words for the
owner.
"""

COMPUTES = 2
"""The version of this dprec."""
