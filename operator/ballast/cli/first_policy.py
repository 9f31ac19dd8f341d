"""What to do where there is no policy yet."""

from __future__ import annotations

FIRST_POLICY = """\
Name the nodes that your executors run on (their labels) and the address of your Prometheus:

kubectl apply -f - <<'EOF'
apiVersion: ballast.dev/v1alpha1
kind: BalancingPolicy
metadata: {name: streaming}
spec:
  nodeSelector: {matchLabels: {pool: streaming}}
  metrics:
    prometheus: {url: "http://prometheus.monitoring:9090"}
EOF

It only recommends. Then ask again: `kubectl ballast status`, `kubectl ballast plan`.
"""
