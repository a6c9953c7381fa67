//! Changes of objects in the state without a call: they are seen changed, go, are taken over, are let go, or
//! get another address.

use std::collections::BTreeMap;

use super::records::Record;
use super::{IllegalRecord, illegal};
use crate::address::{Address, Name};
use crate::digest::Fingerprint;
use crate::sorted::Set;
use crate::state::{Entry, Object, ObjectId, Progress, Snapshot};

impl Snapshot {
    /// Takes over the observed attributes of an object, and the spec's present demands on it.
    pub(super) fn see(&mut self, record: &Record) -> Result<(), IllegalRecord> {
        let Record::Seen {
            address,
            object,
            progress,
            attributes,
            managed,
            sensitive,
            dependencies,
        } = record
        else {
            return Ok(());
        };
        let Some(entry) = self.entries.get_mut(address) else {
            return illegal(format_args!("{address} was seen and is not in the state"));
        };
        let Some(known) = entry.object_mut(object) else {
            return illegal(format_args!("{address} has no object {object}"));
        };
        known.progress = progress.clone();
        known.attributes = attributes.clone();
        known.managed.clone_from(managed);
        known.sensitive.clone_from(sensitive);
        entry.dependencies.clone_from(dependencies);
        Ok(())
    }

    /// Records triggers that fired. A trigger that is recorded already keeps its first fingerprint, because
    /// its replace has not happened yet.
    pub(super) fn remember_triggers(
        &mut self,
        address: &Address,
        object: &ObjectId,
        made_with: &BTreeMap<Name, Fingerprint>,
    ) -> Result<(), IllegalRecord> {
        let entry = self.entries.get_mut(address);
        let Some(known) = entry.and_then(|entry| entry.object_mut(object)) else {
            return illegal(format_args!("{address} has no object {object}"));
        };
        for (trigger, before) in made_with {
            known.made_with.entry(trigger.clone()).or_insert_with(|| before.clone());
        }
        Ok(())
    }

    /// Forgets an object that stays in the API.
    pub(super) fn let_go(&mut self, address: &Address, id: &ObjectId) -> Result<(), IllegalRecord> {
        let known = self.entries.get(address).and_then(|entry| entry.object(id));
        if let Some(Progress::Created { nonce, .. }) = known.map(|own| own.progress.clone()) {
            // An object that is let go under its one-time name is no leftover; a twin of it is.
            for watched in self.watched.iter_mut().filter(|watched| watched.nonce == nonce) {
                watched.let_go.push(id.clone());
            }
        }
        // An object that is let go belongs to others again, and may be taken over again.
        if let Some(ids) = self.taken_over.get_mut(address)
            && ids.remove(id)
            && ids.is_empty()
        {
            self.taken_over.remove(address);
        }
        self.remove(address, id)
    }

    pub(super) fn adopt(
        &mut self,
        address: &Address,
        provider: &Name,
        object: &Object,
        dependencies: &Set<Address>,
    ) -> Result<(), IllegalRecord> {
        if self.entries.get(address).is_some_and(|entry| entry.current.is_some()) {
            return illegal(format_args!("{address} was taken over and exists"));
        }
        let deposed = self.entries.remove(address).map_or_else(Vec::new, |entry| entry.deposed);
        let entry = Entry {
            provider: provider.clone(),
            current: Some(object.clone()),
            deposed,
            dependencies: dependencies.clone(),
        };
        self.entries.insert(address.clone(), entry);
        let ids = self.taken_over.entry(address.clone()).or_default();
        ids.insert(object.id.clone());
        Ok(())
    }

    pub(super) fn depose(&mut self, address: &Address, provider: &Name, object: &Object) {
        let entry = self
            .entries
            .entry(address.clone())
            .or_insert_with(|| Entry::without_object(provider.clone()));
        if entry.object(&object.id).is_none() {
            entry.deposed.push(object.clone());
        }
    }

    pub(super) fn remove(&mut self, address: &Address, id: &ObjectId) -> Result<(), IllegalRecord> {
        let Some(entry) = self.entries.get_mut(address) else {
            return illegal(format_args!("{address} went and was never there"));
        };
        if entry.object(id).is_none() {
            return illegal(format_args!("{address} lost an object {id} that it never had"));
        }
        entry.deposed.retain(|object| object.id != *id);
        if entry.current.as_ref().is_some_and(|object| object.id == *id) {
            entry.current = None;
        }
        if entry.current.is_none() && entry.deposed.is_empty() {
            self.entries.remove(address);
        }
        Ok(())
    }

    pub(super) fn rename(&mut self, from: &Address, to: &Address) -> Result<(), IllegalRecord> {
        if self.entries.contains_key(to) {
            return illegal(format_args!("{from} moved to {to}, which exists"));
        }
        let is_called = || self.pending.values().any(|call| call.started.address == *from);
        if !self.entries.contains_key(from) && !is_called() {
            return illegal(format_args!("{from} moved and is not in the state"));
        }
        self.rename_all(&BTreeMap::from([(from.clone(), to.clone())]));
        Ok(())
    }

    /// Changes addresses wherever the state names them; `new` has the new addresses by the old ones. No
    /// object may have one of the new addresses already.
    pub fn rename_all(&mut self, new: &BTreeMap<Address, Address>) {
        for (from, to) in new {
            if let Some(entry) = self.entries.remove(from) {
                self.entries.insert(to.clone(), entry);
            }
            if let Some(ids) = self.taken_over.remove(from) {
                self.taken_over.entry(to.clone()).or_default().extend(ids);
            }
        }
        for entry in self.entries.values_mut() {
            entry.dependencies.replace(new);
        }
        for watched in &mut self.watched {
            if let Some(to) = new.get(&watched.address) {
                watched.address = to.clone();
            }
        }
        self.pending.rename(new);
    }
}

impl Entry {
    /// Returns the object with this id, current or deposed.
    pub fn object(&self, id: &ObjectId) -> Option<&Object> {
        self.current.iter().chain(&self.deposed).find(|object| object.id == *id)
    }

    pub(super) fn object_mut(&mut self, id: &ObjectId) -> Option<&mut Object> {
        self.current.iter_mut().chain(&mut self.deposed).find(|object| object.id == *id)
    }
}
