"""What users see of a pass: the status of a policy and of the topologies in its pool."""

from ballast.controller.status.outlook import Outlook, stalled_status, unshown_status
from ballast.controller.status.policy import policy_status
from ballast.controller.status.topology import topology_status

__all__ = ["Outlook", "policy_status", "stalled_status", "topology_status", "unshown_status"]
