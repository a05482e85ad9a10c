"""Sensors on stream tables; deferred, they cost a connection and no worker."""

from airflow_provider_pgtrickle.sensors.buffer import ChangeBufferSensor
from airflow_provider_pgtrickle.sensors.freshness import StreamTableFreshnessSensor

__all__ = ["ChangeBufferSensor", "StreamTableFreshnessSensor"]
