//! To come: format.
