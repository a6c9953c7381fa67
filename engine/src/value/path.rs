//! Places inside values, and sets of them: where a value is sensitive.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::Value;
use crate::address::Name;

/// One step into a value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Segment {
    /// Into a list or a set.
    Index(usize),
    /// Into a map or an object.
    Key(Name),
}

impl From<usize> for Segment {
    fn from(index: usize) -> Self {
        Self::Index(index)
    }
}

impl From<Name> for Segment {
    fn from(name: Name) -> Self {
        Self::Key(name)
    }
}

/// A place inside a value; the root is the whole value.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Path(pub Vec<Segment>);

impl Path {
    /// The whole value.
    pub fn root() -> Self {
        Self::default()
    }

    /// The attribute `name` of an object.
    pub fn attribute(name: impl Into<Name>) -> Self {
        Self(vec![Segment::Key(name.into())])
    }

    /// This path, one step further.
    #[must_use]
    pub fn join(&self, segment: impl Into<Segment>) -> Self {
        let mut path = self.clone();
        path.0.push(segment.into());
        path
    }

    /// Says whether `other` is this place or inside it.
    pub fn covers(&self, other: &Path) -> bool {
        other.0.starts_with(&self.0)
    }

    /// This place in `value`, or the outermost set that it is in: what a set holds is sorted, so an item
    /// stands elsewhere as soon as another comes or goes.
    #[must_use]
    pub fn around_sets(&self, value: &Value) -> Path {
        let mut part = value;
        for (depth, segment) in self.0.iter().enumerate() {
            if matches!(part, Value::Set(_)) {
                return Path(self.0[..depth].to_vec());
            }
            match part.step(segment) {
                Some(next) => part = next,
                None => break,
            }
        }
        self.clone()
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, segment) in self.0.iter().enumerate() {
            match segment {
                Segment::Index(number) => write!(f, "[{number}]")?,
                Segment::Key(key) if crate::address::is_name(key) => {
                    write!(f, "{}{key}", if index == 0 { "" } else { "." })?;
                }
                Segment::Key(key) => {
                    write!(f, "[{}]", serde_json::Value::String(key.to_string()))?;
                }
            }
        }
        Ok(())
    }
}

/// The sensitive places of a value, none inside another.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Paths(BTreeSet<Path>);

impl Paths {
    /// No place.
    pub fn none() -> Self {
        Self::default()
    }

    /// The whole value.
    pub fn whole() -> Self {
        Self(BTreeSet::from([Path::root()]))
    }

    /// Says whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Says whether the place, or one around it, is among them.
    pub fn covers(&self, path: &Path) -> bool {
        self.0.iter().any(|own| own.covers(path))
    }

    /// Says whether the place, one around it or one inside it is among them.
    pub fn touches(&self, path: &Path) -> bool {
        self.0.iter().any(|own| own.covers(path) || path.covers(own))
    }

    /// Adds a place.
    pub fn insert(&mut self, path: Path) {
        if !self.covers(&path) {
            self.0.retain(|own| !path.covers(own));
            self.0.insert(path);
        }
    }

    /// Adds the places of `other`, each moved below `prefix`.
    pub fn extend_below(&mut self, prefix: &Path, other: &Paths) {
        for path in &other.0 {
            let mut full = prefix.clone();
            full.0.extend(path.0.iter().cloned());
            self.insert(full);
        }
    }

    /// The places inside the part at `segment`, seen from there.
    #[must_use]
    pub fn inside(&self, segment: &Segment) -> Paths {
        let mut paths = Paths::none();
        for path in &self.0 {
            match path.0.split_first() {
                None => return Paths::whole(),
                Some((first, rest)) if first == segment => paths.insert(Path(rest.to_vec())),
                Some(_) => {}
            }
        }
        paths
    }

    /// The same places in `value`, where those in a set are all of the set.
    #[must_use]
    pub fn around_sets(&self, value: &Value) -> Paths {
        self.0.iter().map(|path| path.around_sets(value)).collect()
    }

    /// The places, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Path> {
        self.0.iter()
    }
}

impl FromIterator<Path> for Paths {
    fn from_iter<I: IntoIterator<Item = Path>>(paths: I) -> Self {
        let mut set = Paths::none();
        for path in paths {
            set.insert(path);
        }
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_absorb_what_they_cover() {
        let mut paths = Paths::none();
        paths.insert(Path::attribute("a").join(0));
        paths.insert(Path::attribute("a"));
        assert_eq!(paths.iter().count(), 1);
        assert!(paths.covers(&Path::attribute("a").join(7)));
        assert!(!paths.covers(&Path::root()));
        assert!(paths.touches(&Path::root()));
    }
}
