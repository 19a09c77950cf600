"""Which task joins a host: numbers that Spark's hash sends where they are to go.

Spark divides rows by a hash of a column. Of hosts' names it would send several to one task and none to another, and the last
task decides when a run ends. Here each host gets a number whose hash is a task of its own. An engine with another hash
divides otherwise, and the rows are the same.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from typing import TypeVar

Name = TypeVar("Name")

SEED = 42
"""Spark's (`HashPartitioning`, `Murmur3Hash`)."""

WORD = 0xFFFFFFFF


def keys(sizes: Mapping[Name, int], tasks: int) -> dict[Name, int]:
    """A number for each, so that the tasks get as much as can be; sizes are in any unit."""
    numbers = _numbers(tasks)
    loads = [(0, task) for task in range(tasks)]
    found = {}
    # The largest first, each to the task that has least.
    for name in sorted(sizes, key=lambda name: (-sizes[name], str(name))):
        load, task = heapq.heappop(loads)
        found[name] = numbers[task]
        heapq.heappush(loads, (load + max(sizes[name], 1), task))
    return found


def _numbers(tasks: int) -> list[int]:
    """For each task a number that Spark's hash sends there."""
    found: dict[int, int] = {}
    number = 0
    while len(found) < tasks:
        found.setdefault(task_of(number, tasks), number)
        number += 1
    return [found[task] for task in range(tasks)]


def task_of(number: int, tasks: int) -> int:
    """Where Spark's `repartition(tasks, column)` sends a row with this number."""
    value = murmur3(number)
    return (value - (1 << 32) if value >= 1 << 31 else value) % tasks


def murmur3(number: int) -> int:
    """MurmurHash3 (32 bits) of an integer of 32 bits, as Spark has it."""
    word = number * 0xCC9E2D51 & WORD
    word = (word << 15 | word >> 17) & WORD
    word = word * 0x1B873593 & WORD
    value = SEED ^ word
    value = (value << 13 | value >> 19) & WORD
    value = (value * 5 + 0xE6546B64) & WORD
    value ^= 4  # bytes
    value = (value ^ value >> 16) * 0x85EBCA6B & WORD
    value = (value ^ value >> 13) * 0xC2B2AE35 & WORD
    return value ^ value >> 16
