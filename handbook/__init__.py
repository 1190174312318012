"""What the chapters build: an LLM inference engine with prefix caching, one concept a module."""
