"""Clicks from Kafka, numbered per user in PySpark's state, to Kafka: placed, routed and audited by Ballast."""
