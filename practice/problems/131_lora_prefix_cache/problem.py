"""Problem 131: hash-block prefix caching, isolated by LoRA."""

from __future__ import annotations

from pathlib import Path

from practice.grader.contract import Problem

from .cases import groups
from .chinese import CHINESE
from .diagnoses import DIAGNOSES
from .rules import PrefixCacheRules

PROBLEM = Problem(
    number=131,
    folder=Path(__file__).parent,
    title={"en": "Hash-block prefix caching, isolated by LoRA", "zh": "哈希块前缀缓存（带 LoRA 隔离）"},
    difficulty="hard",
    chapter="03_hash_blocks",
    class_name="PrefixCache",
    variable="cache",
    rules=PrefixCacheRules,
    groups=groups,
    diagnoses=DIAGNOSES,
    chinese=CHINESE,
)
