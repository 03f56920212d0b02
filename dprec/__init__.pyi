from dprec.errors import InputError as InputError
from dprec.errors import RunError as RunError
from dprec.errors import SettingError as SettingError
from simulation import RunConfig as RunConfig
from simulation import attack as attack
from simulation import audit as audit
from simulation import compare as compare
from simulation import diff as diff
from simulation import export as export
from simulation import load as load
from simulation import ls as ls
from simulation import plot as plot
from simulation import run as run
from simulation import tune as tune

__version__: str
