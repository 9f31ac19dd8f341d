#!/bin/bash
exec spark-submit --master k8s://https://kubernetes.default:443 --deploy-mode cluster \
  --conf spark.kubernetes.container.image=apache/spark:4.0.1 \
  --conf spark.kubernetes.executor.podTemplateFile=executor.yaml \
  --conf spark.decommission.enabled=true --conf spark.locality.wait=0s \
  local:///opt/app/orders.jar
