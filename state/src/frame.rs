//! To come: frame.
