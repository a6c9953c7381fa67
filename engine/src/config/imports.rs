//! `[[import]]` blocks: objects that exist and are to be taken over into the state.

use std::collections::BTreeMap;

use super::checker::Checker;
use super::names::Names;
use super::{Document, ImportConfig, RawBlock, diagnostics as say};
use crate::address::Address;
use crate::diagnostics::Diagnostics;
use crate::state::ObjectId;

/// Reads and checks the imports. That the objects are there, and belong to nobody else, is for the
/// planner to say.
pub(super) fn imports(
    document: &Document,
    names: &Names<'_>,
    diagnostics: &mut Diagnostics,
) -> BTreeMap<Address, ImportConfig> {
    let mut imports = BTreeMap::new();
    let (mut addresses, mut objects) = (BTreeMap::new(), BTreeMap::new());
    for raw in &document.imports {
        let mut checker = Checker::new(document, names, diagnostics);
        let Some((to, import)) = import(&mut checker, names, raw) else { continue };
        let object = (to.block.ty.clone(), import.id.clone());
        let first = [addresses.get(&to), objects.get(&object)].into_iter().flatten().min().copied();
        if let Some(first) = first {
            checker.push(say::imported_twice(raw.header, first));
            continue;
        }
        objects.insert(object, raw.header);
        addresses.insert(to.clone(), raw.header);
        imports.insert(to, import);
    }
    imports
}

fn import(
    checker: &mut Checker<'_>,
    names: &Names<'_>,
    raw: &RawBlock,
) -> Option<(Address, ImportConfig)> {
    let to = text(checker, raw, "to");
    let id = text(checker, raw, "id");
    let (to, id) = (to?, id?);
    let to_span = raw.items.get("to").map_or(raw.header, |item| item.value.span);
    let id_span = raw.items.get("id").map_or(raw.header, |item| item.value.span);
    let address = to.parse::<Address>();
    let id = ObjectId::typed(&id);
    if let Err(why) = &id {
        checker.push(say::bad_id(why, id_span));
    }
    let address = match address {
        Ok(address) => address,
        Err(error) => {
            checker.push(say::bad_address(&error, to_span));
            return None;
        }
    };
    let Some(known) = names.resources.get(&address.block) else {
        let help = names.resource_help(&address.block, None);
        checker.push(say::import_of_nothing(&address.block, help, to_span));
        return None;
    };
    if known.keyed != address.key.is_some() {
        checker.push(say::import_key(&address, known.keyed, to_span));
        return None;
    }
    Some((address, ImportConfig { id: id.ok()?, span: Some(id_span) }))
}

fn text(checker: &mut Checker<'_>, raw: &RawBlock, key: &str) -> Option<crate::address::Name> {
    let Some(item) = raw.items.get(key) else {
        checker.push(say::missing_key("this import", key, raw.header));
        return None;
    };
    checker.constant_text(&format!("`{key}` of an import"), &item.value)
}
