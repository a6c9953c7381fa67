//! The library of the fuzz targets. It has only their entries.

pub mod entries;
