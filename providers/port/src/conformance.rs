//! The conformance suite that every provider runs.
