spark-submit --master k8s://https://10.0.0.1:6443 --deploy-mode cluster --class shop.Tool \
  --conf spark.executor.instances=0 local:///app/tool.jar
