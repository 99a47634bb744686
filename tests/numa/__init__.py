"""Tests on an emulated machine of two sockets with SMT."""
