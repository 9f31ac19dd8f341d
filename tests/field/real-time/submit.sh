#!/bin/bash
spark-submit --master k8s://https://10.0.0.1:6443 --deploy-mode cluster --executor-memory 4g \
  --conf spark.decommission.enabled=true --conf spark.locality.wait=0s \
  --conf spark.kubernetes.executor.label.ballast.dev/workload=Streaming alerts.py
