"""Sensors on stream tables. A deferred one needs a connection, but no worker."""

from airflow_provider_pgtrickle.sensors.buffer import ChangeBufferSensor
from airflow_provider_pgtrickle.sensors.freshness import StreamTableFreshnessSensor

__all__ = ["ChangeBufferSensor", "StreamTableFreshnessSensor"]
