//! Tests that need several processes, several versions of Plumb, or a release build.

#[cfg(test)]
mod fixtures;
#[cfg(test)]
mod kills;
#[cfg(test)]
mod speed;
