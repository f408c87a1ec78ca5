"""A language model from text to GGUF on OpenCL, built to be read."""

__version__ = "0.1.0"
