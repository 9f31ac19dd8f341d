"""A stateful streaming job on Spark, its numbered records, and the comparison of what went in and came out."""
