"""Framework adapters, one module per framework: seed, thread counts, versions and profiler.

Importing ONNX Runtime or OpenVINO starts a thread that sends usage data, and writes to the home
folder. No worker does that, whichever adapter it uses.
"""

import os
import sys
from types import ModuleType

os.environ["ORT_DISABLE_TELEMETRY"] = "1"
# OpenVINO has no setting for it, but does without where this package is incomplete.
sys.modules["openvino_telemetry"] = ModuleType("openvino_telemetry")
