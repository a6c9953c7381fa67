//! To come: conformance.
