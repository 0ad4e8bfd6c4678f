"""Models on disk: one file, or a folder of parts; written whole or not at all, with a checksum over every byte."""
