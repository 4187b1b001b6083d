"""How the searches and brokers that come with the package are called as targets."""

from __future__ import annotations

LEXICAL, HYBRID, BROKER = "lexical", "hybrid", "broker"
REFERENCE_ENGINES = (LEXICAL, HYBRID)
LEXICAL_ONLY = "lexical-only"
