"""Problem 130: cache-aware request routing."""

from __future__ import annotations

from pathlib import Path

from practice.grader.contract import Problem

from .cases import groups
from .chinese import CHINESE
from .diagnoses import DIAGNOSES
from .rules import RouterRules
from .showcase import describe, stream

PROBLEM = Problem(
    number=130,
    folder=Path(__file__).parent,
    title={"en": "Cache-aware request routing", "zh": "缓存感知的请求路由"},
    difficulty="medium",
    chapter="07_routing",
    class_name="CacheAwareRouter",
    variable="router",
    rules=RouterRules,
    groups=groups,
    diagnoses=DIAGNOSES,
    chinese=CHINESE,
    showcase=stream,
    describe_showcase=describe,
)
