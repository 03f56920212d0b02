"""The formats of a pilot's files that outlive a process; see `dprec.formats`."""

from dprec.formats import Format

DEVICE = Format("device.json", 1, "the folder of a device, with catalogue.txt")
DEVICE_STATE = Format("state", 1, "the folder of a device, with ledger.jsonl and profiles/")
INVITATION = Format("invitation.json", 1, "the folder of a pilot's server")
DEPLOYMENT = Format("deployment.json", 2, "the folder of a pilot's server, with its other files")
