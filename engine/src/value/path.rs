//! Places inside values, and sets of places, which say where a value is sensitive.

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

    /// Returns true if `other` is this place or inside it.
    pub fn covers(&self, other: &Path) -> bool {
        other.0.starts_with(&self.0)
    }

    /// Returns this place in `value`, or the outermost set around it: the items of a set are sorted, so an
    /// item moves as soon as another one comes or goes.
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

impl Path {
    /// Returns this place in `value`, or the outermost part around it that is not a map: an item of a list
    /// moves as soon as another one comes or goes, and a value of another shape has no such place.
    #[must_use]
    pub fn around_lists(&self, value: &Value) -> Path {
        let mut part = value;
        for (depth, segment) in self.0.iter().enumerate() {
            match (part, part.step(segment)) {
                (Value::Map(_), Some(next)) => part = next,
                (Value::Map(_), None) => break,
                _ => return Path(self.0[..depth].to_vec()),
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
///
/// In sorted order a place comes right before the places inside it. So the last place up to some other place
/// is the one around it, if there is one, and the places inside it come right after it. No operation here has
/// to look at all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "BTreeSet<Path>", into = "BTreeSet<Path>")]
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

    /// Returns true if there is no place.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns true if the place, or one around it, is in the set.
    pub fn covers(&self, path: &Path) -> bool {
        self.0.range(..=path).next_back().is_some_and(|own| own.covers(path))
    }

    /// Returns true if the place, one around it or one inside it is in the set.
    pub fn touches(&self, path: &Path) -> bool {
        self.covers(path) || self.0.range(path..).next().is_some_and(|own| path.covers(own))
    }

    /// Adds a place.
    pub fn insert(&mut self, path: Path) {
        if !self.covers(&path) {
            while let Some(inside) = self.0.range(&path..).next().filter(|own| path.covers(own)) {
                let inside = inside.clone();
                self.0.remove(&inside);
            }
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

    /// Returns the places inside the part at `segment`, relative to that part.
    #[must_use]
    pub fn inside(&self, segment: &Segment) -> Paths {
        if self.0.first().is_some_and(|first| first.0.is_empty()) {
            return Paths::whole();
        }
        if self.0.is_empty() {
            return Paths::none();
        }
        let part = Path(vec![segment.clone()]);
        let inside = self.0.range(&part..).take_while(|own| part.covers(own));
        Paths(inside.map(|own| Path(own.0[1..].to_vec())).collect())
    }

    /// Returns the same places in `value`, with each place inside a set widened to the whole set.
    #[must_use]
    pub fn around_sets(&self, value: &Value) -> Paths {
        self.0.iter().map(|path| path.around_sets(value)).collect()
    }

    /// Returns the same places in `value`, with each place inside a list, or inside a part that is no map,
    /// widened to that whole part.
    #[must_use]
    pub fn around_lists(&self, value: &Value) -> Paths {
        self.0.iter().map(|path| path.around_lists(value)).collect()
    }

    /// The places, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Path> {
        self.0.iter()
    }
}

impl From<BTreeSet<Path>> for Paths {
    fn from(paths: BTreeSet<Path>) -> Self {
        paths.into_iter().collect()
    }
}

impl From<Paths> for BTreeSet<Path> {
    fn from(paths: Paths) -> Self {
        paths.0
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

    /// Returns all places of up to two steps, with keys and indices that sort before and after one another.
    fn places() -> Vec<Path> {
        let steps = || [0.into(), 1.into(), Name::from("a").into(), Name::from("ab").into()];
        let one = steps().into_iter().map(|step: Segment| Path(vec![step]));
        let two = one.clone().flat_map(|path| steps().map(|step| path.join(step)));
        std::iter::once(Path::root()).chain(one.clone()).chain(two).collect()
    }

    #[test]
    fn what_is_found_by_order_is_what_all_of_them_say() {
        let places = places();
        for first in &places {
            for second in &places {
                for third in &places {
                    let given = [first, second, third];
                    let paths: Paths = given.into_iter().cloned().collect();
                    for place in &places {
                        let around = given.iter().any(|own| own.covers(place));
                        let inside = given.iter().any(|own| place.covers(own));
                        assert_eq!(paths.covers(place), around, "{given:?} {place}");
                        assert_eq!(paths.touches(place), around || inside, "{given:?} {place}");
                        if let [segment] = &place.0[..] {
                            let part = paths.inside(segment);
                            for below in &places {
                                let full = Path([&place.0[..], &below.0[..]].concat());
                                assert_eq!(part.covers(below), paths.covers(&full));
                                assert_eq!(part.touches(below), paths.touches(&full));
                            }
                        }
                    }
                }
            }
        }
    }
}
