//! To come: file.
