from corebound.api.calibrate import Calibrations as Calibrations
from corebound.api.calibrate import calibrate as calibrate
from corebound.api.commits import Bisection as Bisection
from corebound.api.commits import bisect as bisect
from corebound.api.commits import compare_commits as compare_commits
from corebound.api.comparison import ComparedRow as ComparedRow
from corebound.api.comparison import Comparison as Comparison
from corebound.api.doctor import HostChecks as HostChecks
from corebound.api.doctor import doctor as doctor
from corebound.api.doctor import restore_host as restore_host
from corebound.api.doctor import tune_host as tune_host
from corebound.api.environments import environments as environments
from corebound.api.environments import make_environments as make_environments
from corebound.api.environments import remove_environments as remove_environments
from corebound.api.export import export as export
from corebound.api.fleet import Fleet as Fleet
from corebound.api.hosts import HostResults as HostResults
from corebound.api.imports import import_asv as import_asv
from corebound.api.imports import import_profiles as import_profiles
from corebound.api.imports import import_results as import_results
from corebound.api.init import examples as examples
from corebound.api.init import init as init
from corebound.api.init import write_examples as write_examples
from corebound.api.measure import Measurement as Measurement
from corebound.api.measure import measure as measure
from corebound.api.measure import run as run
from corebound.api.nightly import NightlyRun as NightlyRun
from corebound.api.nightly import nightly as nightly
from corebound.api.plan import PlannedConfiguration as PlannedConfiguration
from corebound.api.plan import RunPlan as RunPlan
from corebound.api.plan import check as check
from corebound.api.plan import plan as plan
from corebound.api.plan import topology as topology
from corebound.api.publish import publish as publish
from corebound.api.regressions import HistoryChange as HistoryChange
from corebound.api.regressions import Regressions as Regressions
from corebound.api.report import write_site as write_site
from corebound.api.reproduce import Reproduction as Reproduction
from corebound.api.reproduce import reproduce as reproduce
from corebound.api.results import Results as Results
from corebound.api.results import load as load
from corebound.api.tune import Tuning as Tuning
from corebound.api.tune import VerifiedTuning as VerifiedTuning
from corebound.api.tune import tune as tune
from corebound.api.tune import verify_tuning as verify_tuning
from corebound.api.update import update as update
from corebound.errors import CoreboundError as CoreboundError
from corebound.launch.environments import EnvironmentStatus as EnvironmentStatus
from corebound.machine.doctor.tuning import SettingResult as SettingResult
from corebound.machine.topology import Topology as Topology
from corebound.workflow.environments import MadeEnvironment as MadeEnvironment
from corebound.workflow.environments import RemovedEnvironment as RemovedEnvironment
from corebound.workflow.examples import Example as Example
from corebound.workflow.examples import WrittenExamples as WrittenExamples
from corebound.workflow.export import Export as Export
from corebound.workflow.import_history import ImportedProject as ImportedProject
from corebound.workflow.import_profile import StoredProfile as StoredProfile
from corebound.workflow.import_results import ImportedResults as ImportedResults
from corebound.workflow.init import InitResult as InitResult
from corebound.workflow.plan import CheckedScenario as CheckedScenario
from corebound.workflow.projects import UpdatedProject as UpdatedProject
from corebound.workflow.publish import Publication as Publication
from corebound.workflow.recorded_runs import LaunchLog as LaunchLog
from corebound.workflow.report import WrittenSite as WrittenSite

__version__: str
__all__ = [
    "Bisection",
    "Calibrations",
    "CheckedScenario",
    "ComparedRow",
    "Comparison",
    "CoreboundError",
    "EnvironmentStatus",
    "Example",
    "Export",
    "Fleet",
    "HistoryChange",
    "HostChecks",
    "HostResults",
    "ImportedProject",
    "ImportedResults",
    "InitResult",
    "LaunchLog",
    "MadeEnvironment",
    "Measurement",
    "NightlyRun",
    "PlannedConfiguration",
    "Publication",
    "Regressions",
    "RemovedEnvironment",
    "Reproduction",
    "Results",
    "RunPlan",
    "SettingResult",
    "StoredProfile",
    "Topology",
    "Tuning",
    "UpdatedProject",
    "VerifiedTuning",
    "WrittenExamples",
    "WrittenSite",
    "__version__",
    "bisect",
    "calibrate",
    "check",
    "compare_commits",
    "doctor",
    "environments",
    "examples",
    "export",
    "import_asv",
    "import_profiles",
    "import_results",
    "init",
    "load",
    "make_environments",
    "measure",
    "nightly",
    "plan",
    "publish",
    "remove_environments",
    "reproduce",
    "restore_host",
    "run",
    "topology",
    "tune",
    "tune_host",
    "update",
    "verify_tuning",
    "write_examples",
    "write_site",
]
