//! What takes more than one process, more than one version of Plumb, or a release build.

#[cfg(test)]
mod fixtures;
#[cfg(test)]
mod kills;
#[cfg(test)]
mod speed;
