//! Small maps and sets as sorted lists.
//!
//! A plan holds very many maps and sets with very few members. A tree reserves room for a dozen members in
//! each; a sorted list needs only the room of its members, and is faster to walk and to copy. Adding members
//! in order is cheap, and so is [`FromIterator`] in any order. Adding to a large list out of order is
//! expensive, so such code collects the members first.

use std::borrow::Borrow;
use std::fmt;
use std::iter;
use std::ops::Index;
use std::slice;
use std::vec;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A map as a list of entries, sorted by key, each key once.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Map<K, V>(Vec<(K, V)>);

/// A set as a sorted list, each member once.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Set<T>(Vec<T>);

impl<K: Ord, V> Map<K, V> {
    /// An empty map.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// An empty map with room for some entries.
    pub fn with_capacity(entries: usize) -> Self {
        Self(Vec::with_capacity(entries))
    }

    /// The value of a key.
    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.find(key).ok().map(|index| &self.0[index].1)
    }

    /// Returns the value of a key for a change.
    pub fn get_mut<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        self.find(key).ok().map(|index| &mut self.0[index].1)
    }

    /// Returns true if there is such a key.
    pub fn contains_key<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.find(key).is_ok()
    }

    /// Adds a key, or gives it another value; returns the value that it had.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        match self.find(&key) {
            Ok(index) => Some(std::mem::replace(&mut self.0[index].1, value)),
            Err(index) => {
                self.0.insert(index, (key, value));
                None
            }
        }
    }

    /// Adds a key, unless it exists already.
    pub fn insert_absent(&mut self, key: K, value: V) {
        if let Err(index) = self.find(&key) {
            self.0.insert(index, (key, value));
        }
    }

    /// Removes a key; returns the value that it had.
    pub fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        self.find(key).ok().map(|index| self.0.remove(index).1)
    }

    /// Keeps the entries for which `keep` holds.
    pub fn retain(&mut self, mut keep: impl FnMut(&K, &mut V) -> bool) {
        self.0.retain_mut(|(key, value)| keep(key, value));
    }

    fn find<Q: Ord + ?Sized>(&self, key: &Q) -> Result<usize, usize>
    where
        K: Borrow<Q>,
    {
        // Keys mostly come in order.
        match self.0.last() {
            Some((last, _)) if last.borrow() < key => Err(self.0.len()),
            _ => self.0.binary_search_by(|(own, _)| own.borrow().cmp(key)),
        }
    }
}

impl<K, V> Map<K, V> {
    /// The entries, by key.
    pub fn iter(&self) -> MapIter<'_, K, V> {
        self.0.iter().map(|(key, value)| (key, value))
    }

    /// The keys, in order.
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = &K> + ExactSizeIterator + Clone {
        self.0.iter().map(|(key, _)| key)
    }

    /// The values, in the order of their keys.
    pub fn values(&self) -> impl DoubleEndedIterator<Item = &V> + ExactSizeIterator + Clone {
        self.0.iter().map(|(_, value)| value)
    }

    /// The values in the order of their keys, to be changed.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.0.iter_mut().map(|(_, value)| value)
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns true if there is no entry.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The entries of a [`Map`] by reference.
pub type MapIter<'a, K, V> = iter::Map<slice::Iter<'a, (K, V)>, fn(&'a (K, V)) -> (&'a K, &'a V)>;

impl<'a, K, V> IntoIterator for &'a Map<K, V> {
    type Item = (&'a K, &'a V);
    type IntoIter = MapIter<'a, K, V>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<K, V> IntoIterator for Map<K, V> {
    type Item = (K, V);
    type IntoIter = vec::IntoIter<(K, V)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<K: Ord, V> FromIterator<(K, V)> for Map<K, V> {
    /// If several entries have one key, the last one counts.
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut entries: Vec<(K, V)> = entries.into_iter().collect();
        if !entries.is_sorted_by(|a, b| a.0 < b.0) {
            entries.reverse();
            entries.sort_by(|a, b| a.0.cmp(&b.0));
            entries.dedup_by(|a, b| a.0 == b.0);
        }
        entries.shrink_to_fit();
        Self(entries)
    }
}

impl<K: Ord, V> Extend<(K, V)> for Map<K, V> {
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, entries: I) {
        for (key, value) in entries {
            self.insert(key, value);
        }
    }
}

impl<K: Ord, V, const N: usize> From<[(K, V); N]> for Map<K, V> {
    fn from(entries: [(K, V); N]) -> Self {
        entries.into_iter().collect()
    }
}

impl<K, V> Default for Map<K, V> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<K: Ord + Borrow<Q>, V, Q: Ord + ?Sized> Index<&Q> for Map<K, V> {
    type Output = V;

    /// Returns the value of a key that must exist.
    fn index(&self, key: &Q) -> &V {
        self.get(key).expect("the key is in the map")
    }
}

impl<K: fmt::Debug, V: fmt::Debug> fmt::Debug for Map<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<K: Serialize, V: Serialize> Serialize for Map<K, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<T: Ord + Clone> Set<T> {
    /// Replaces members by those that `new` has for them.
    pub fn replace(&mut self, new: &std::collections::BTreeMap<T, T>) {
        if self.iter().any(|member| new.contains_key(member)) {
            *self = self.iter().map(|member| new.get(member).unwrap_or(member).clone()).collect();
        }
    }
}

impl<T: Ord> Set<T> {
    /// An empty set.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Returns true if it is a member.
    pub fn contains<Q: Ord + ?Sized>(&self, member: &Q) -> bool
    where
        T: Borrow<Q>,
    {
        self.0.binary_search_by(|own| own.borrow().cmp(member)).is_ok()
    }

    /// Adds a member; returns true if it is new.
    pub fn insert(&mut self, member: T) -> bool {
        let place = match self.0.last() {
            // Members mostly come in order.
            Some(last) if *last < member => Err(self.0.len()),
            _ => self.0.binary_search(&member),
        };
        if let Err(index) = place {
            self.0.insert(index, member);
        }
        place.is_err()
    }

    /// Removes a member; returns true if it was one.
    pub fn remove<Q: Ord + ?Sized>(&mut self, member: &Q) -> bool
    where
        T: Borrow<Q>,
    {
        let place = self.0.binary_search_by(|own| own.borrow().cmp(member));
        if let Ok(index) = place {
            self.0.remove(index);
        }
        place.is_ok()
    }
}

impl<T> Set<T> {
    /// The members, in order.
    pub fn iter(&self) -> slice::Iter<'_, T> {
        self.0.iter()
    }

    /// Returns the number of members.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns true if there is no member.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Keeps the members for which `keep` holds.
    pub fn retain(&mut self, keep: impl FnMut(&T) -> bool) {
        self.0.retain(keep);
    }
}

impl<'a, T> IntoIterator for &'a Set<T> {
    type Item = &'a T;
    type IntoIter = slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl<T> IntoIterator for Set<T> {
    type Item = T;
    type IntoIter = vec::IntoIter<T>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<T: Ord> FromIterator<T> for Set<T> {
    fn from_iter<I: IntoIterator<Item = T>>(members: I) -> Self {
        let mut members: Vec<T> = members.into_iter().collect();
        if !members.is_sorted_by(|a, b| a < b) {
            members.sort();
            members.dedup();
        }
        members.shrink_to_fit();
        Self(members)
    }
}

impl<T: Ord> Extend<T> for Set<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, members: I) {
        for member in members {
            self.insert(member);
        }
    }
}

impl<T: Ord, const N: usize> From<[T; N]> for Set<T> {
    fn from(members: [T; N]) -> Self {
        members.into_iter().collect()
    }
}

impl<T> Default for Set<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: fmt::Debug> fmt::Debug for Set<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

impl<T: Serialize> Serialize for Set<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl<'de, T: Ord + Deserialize<'de>> Deserialize<'de> for Set<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Vec::deserialize(deserializer)?.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_map_is_what_a_tree_is(entries in prop::collection::vec((0..20_u8, any::<u8>()), 0..40), out in 0..20_u8) {
            let (mut tree, mut list) = (BTreeMap::new(), Map::new());
            for (key, value) in entries.iter().copied() {
                prop_assert_eq!(tree.insert(key, value), list.insert(key, value));
            }
            let collected: Map<u8, u8> = entries.into_iter().collect();
            prop_assert_eq!(&list, &collected);
            prop_assert_eq!(tree.remove(&out), list.remove(&out));
            prop_assert_eq!(tree.get(&out), list.get(&out));
            prop_assert!(tree.iter().eq(list.iter()));
        }

        #[test]
        fn a_set_is_what_a_tree_is(members in prop::collection::vec(0..20_u8, 0..40), out in 0..20_u8) {
            let (mut tree, mut list) = (BTreeSet::new(), Set::new());
            for member in members.iter().copied() {
                prop_assert_eq!(tree.insert(member), list.insert(member));
            }
            let collected: Set<u8> = members.into_iter().collect();
            prop_assert_eq!(&list, &collected);
            prop_assert_eq!(tree.remove(&out), list.remove(&out));
            prop_assert!(!list.contains(&out));
            prop_assert!(tree.iter().eq(list.iter()));
        }
    }

    #[test]
    fn they_are_written_as_trees_are() {
        let map = Map::from([("b", 2), ("a", 1)]);
        assert_eq!(serde_json::to_string(&map).unwrap(), r#"{"a":1,"b":2}"#);
        let set = Set::from(["b", "a"]);
        let text = serde_json::to_string(&set).unwrap();
        assert_eq!(text, r#"["a","b"]"#);
        assert_eq!(serde_json::from_str::<Set<String>>(r#"["b","a","b"]"#).unwrap().len(), 2);
    }
}
