"""What a rule judges: a cell of a scenario, or a running service.

What only one of the two has is None, 0 or empty for the other.
"""

from corebound.diagnosis.evidence import CellEvidence
from corebound.diagnosis.service_evidence import ServiceEvidence

Subject = CellEvidence | ServiceEvidence
