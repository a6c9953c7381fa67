//! The keys of a block with their values.

use std::ops::Index;
use std::sync::Arc;

use super::Item;
use crate::address::Name;

/// A table of a spec, by key.
///
/// A sorted list: a spec has very many tables with very few keys, and a tree would reserve room for a dozen
/// in each. Shared, because the config contains mostly the same tables as the document.
#[derive(Clone, Debug, Default)]
pub struct Table(Arc<Vec<(Name, Item)>>);

impl Table {
    /// A table without keys.
    pub fn new() -> Self {
        Self::default()
    }

    /// A table without keys that has room for some.
    pub fn with_capacity(keys: usize) -> Self {
        Self(Arc::new(Vec::with_capacity(keys)))
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&Item> {
        Some(&self.0[self.find(key).ok()?].1)
    }

    /// Returns true if there is such a key.
    pub fn contains_key(&self, key: &str) -> bool {
        self.find(key).is_ok()
    }

    /// Adds a key, or gives it another value; returns the value that it had.
    pub fn insert(&mut self, key: Name, item: Item) -> Option<Item> {
        let place = self.find(&key);
        let entries = Arc::make_mut(&mut self.0);
        match place {
            Ok(index) => Some(std::mem::replace(&mut entries[index].1, item)),
            Err(index) => {
                entries.insert(index, (key, item));
                None
            }
        }
    }

    /// Takes a key out.
    pub fn remove(&mut self, key: &str) -> Option<Item> {
        let index = self.find(key).ok()?;
        Some(Arc::make_mut(&mut self.0).remove(index).1)
    }

    /// Keeps the keys for which `keep` holds.
    pub fn retain(&mut self, keep: impl Fn(&Name) -> bool) {
        if !self.keys().all(&keep) {
            Arc::make_mut(&mut self.0).retain(|(key, _)| keep(key));
        }
    }

    /// The keys with their values, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&Name, &Item)> + Clone {
        self.0.iter().map(|(key, item)| (key, item))
    }

    /// The keys, in order.
    pub fn keys(&self) -> impl Iterator<Item = &Name> + Clone {
        self.0.iter().map(|(key, _)| key)
    }

    /// The values, in the order of their keys.
    pub fn values(&self) -> impl Iterator<Item = &Item> + Clone {
        self.0.iter().map(|(_, item)| item)
    }

    /// The values, in the order of their keys, to change them.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut Item> {
        Arc::make_mut(&mut self.0).iter_mut().map(|(_, item)| item)
    }

    /// Returns the number of keys.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns true if there is no key.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn find(&self, key: &str) -> Result<usize, usize> {
        // Keys mostly come in order.
        match self.0.last() {
            Some((last, _)) if &**last < key => Err(self.0.len()),
            _ => self.0.binary_search_by(|(other, _)| (**other).cmp(key)),
        }
    }
}

impl Index<&str> for Table {
    type Output = Item;

    /// Returns the value of a key that must exist.
    fn index(&self, key: &str) -> &Item {
        self.get(key).expect("the key is in the table")
    }
}

impl FromIterator<(Name, Item)> for Table {
    fn from_iter<I: IntoIterator<Item = (Name, Item)>>(entries: I) -> Self {
        let mut table = Self::new();
        for (key, item) in entries {
            table.insert(key, item);
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::SpecExpr;
    use crate::diagnostics::{FileId, Span};
    use crate::expression::Expr;
    use crate::value::Value;

    fn item(number: u32) -> Item {
        let span = Span { file: FileId(0), start: number, end: number };
        Item { key: span, value: SpecExpr { expr: Expr::literal(Value::Null), span } }
    }

    #[test]
    fn keys_are_found_however_they_came() {
        let mut table = Table::new();
        for (number, key) in ["m", "a", "z", "b"].into_iter().enumerate() {
            assert!(table.insert(key.into(), item(u32::try_from(number).unwrap())).is_none());
        }
        let keys: Vec<&str> = table.keys().map(|key| &**key).collect();
        assert_eq!(keys, ["a", "b", "m", "z"]);
        assert_eq!(table["b"].key.start, 3);
        assert_eq!(table.insert("b".into(), item(9)).unwrap().key.start, 3);
        assert_eq!(table.remove("b").unwrap().key.start, 9);
        assert!(table.get("b").is_none() && !table.contains_key("zz") && table.len() == 3);
        table.retain(|key| &**key == "m");
        assert_eq!(table.values().next().unwrap().key.start, 0);
    }
}
