"""The two ways in which a task runs Spark, chosen by the type of its Spark connection."""
