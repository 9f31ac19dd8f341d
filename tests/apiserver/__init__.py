"""One fake API server, on loopback and inside the process.

`tests/cluster/test_fake_apiserver.py` holds it against a real one, behavior by behavior.
"""

from tests.apiserver.exchange import Answer, Asked, failure
from tests.apiserver.server import ApiServer, kubeconfig, scripted, serving
from tests.apiserver.watch import Fault, Watch

__all__ = ["Answer", "ApiServer", "Asked", "Fault", "Watch", "failure", "kubeconfig", "scripted", "serving"]
