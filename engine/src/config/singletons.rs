//! Objects that each account has from the start: a resource in the spec takes over such an object.

use std::collections::BTreeMap;

use super::diagnostics as say;
use super::{ImportConfig, ImportedObject, ResourceConfig};
use crate::address::{Address, Block, Name};
use crate::diagnostics::{Diagnostics, Span};

/// Adds an import for each resource that stands for the only object of its type. An import in the spec itself
/// takes precedence.
pub(super) fn take_over(
    resources: &BTreeMap<Block, ResourceConfig>,
    imports: &mut BTreeMap<Address, ImportConfig>,
    diagnostics: &mut Diagnostics,
) {
    let mut first: BTreeMap<(Name, &Name), Span> = BTreeMap::new();
    for (block, resource) in resources {
        let Some(id) = &resource.schema.singleton else { continue };
        if let Some(for_each) = &resource.for_each {
            diagnostics.push(say::several_singletons(block, for_each.span));
            continue;
        }
        let place = (resource.provider.of(&block.instance(None)), &block.ty);
        if let Some(earlier) = first.insert(place, resource.header) {
            diagnostics.push(say::singleton_twice(block, resource.header, earlier));
            continue;
        }
        let object = ImportedObject::Id(id.clone());
        let import = ImportConfig { object, span: Some(resource.header), of_type: true };
        imports.entry(block.instance(None)).or_insert(import);
    }
}
