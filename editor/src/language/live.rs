//! The values of the state, as they may be shown: nothing that is a secret, or may have become one.

use engine::address::{Address, Block, Name};
use engine::config::Config;
use engine::expression::visit::roots;
use engine::expression::{Expr, Root};
use engine::state::{Object, Snapshot};
use engine::stored::to_json;
use engine::value::Path;

use super::Known;

/// The most instances that are shown.
pub(crate) const INSTANCES_MAX: usize = 5;
/// The longest value that is shown, in characters.
const LENGTH_MAX: usize = 200;

/// The objects of a block: address and id, one a line.
pub(crate) fn objects(known: &Known, block: &Block) -> Vec<String> {
    let lines =
        instances(known, block).map(|(address, object)| format!("`{address}`: id `{}`", object.id));
    shorten(lines)
}

/// The values of an attribute, one a line.
pub(crate) fn values(known: &Known, block: &Block, name: &Name) -> Vec<String> {
    let schema = known.schema_of(block);
    let attribute = schema.and_then(|schema| schema.attributes.get(name));
    let is_secret = attribute.is_none_or(|attribute| attribute.sensitive)
        || is_secret_in(known.whole.config(), block, name);
    let unit = attribute.and_then(|it| it.unit.as_deref()).map(|unit| format!(" {unit}"));
    let unit = unit.unwrap_or_default();
    let line = |(address, object): (&Address, &Object)| {
        let value = if is_secret || is_sealed(object, name) {
            "(sensitive)".to_owned()
        } else {
            let value = object.attributes.json.as_map()?.get(name)?;
            format!("`{}`{unit}", clipped(&to_json(value).to_string()))
        };
        Some(match &address.key {
            Some(_) => format!("`{address}`: {value}"),
            None => value,
        })
    };
    shorten(instances(known, block).filter_map(line))
}

fn instances<'a>(
    known: &'a Known,
    block: &'a Block,
) -> impl Iterator<Item = (&'a Address, &'a Object)> {
    let entries = known.state.as_deref().map(|state: &Snapshot| &state.entries);
    let entries = entries.into_iter().flat_map(move |entries| {
        entries
            .range(block.instance(None)..)
            .take_while(move |(address, _)| address.block == *block)
    });
    entries.filter_map(|(address, entry)| Some((address, entry.current.as_ref()?)))
}

fn shorten(lines: impl Iterator<Item = String>) -> Vec<String> {
    let mut lines = lines.fuse();
    let mut shown: Vec<String> = lines.by_ref().take(INSTANCES_MAX).collect();
    let more = lines.count();
    if more > 0 {
        shown.push(format!("and {more} more"));
    }
    shown
}

fn clipped(text: &str) -> String {
    // A backtick would end the code that the value is shown as.
    let text = text.replace('`', "'");
    match text.char_indices().nth(LENGTH_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// Returns true if a part of the attribute is sealed in the state.
fn is_sealed(object: &Object, name: &Name) -> bool {
    let own = Path::attribute(name.clone());
    let is_part = |path: &Path| path.covers(&own) || own.covers(path);
    let mut sealed = object.attributes.sealed.iter();
    object.sensitive.touches(&own) || sealed.any(|sealed| is_part(&sealed.path))
}

/// Returns true if the spec gives an attribute something that is sensitive, also by way of locals.
fn is_secret_in(config: &Config, block: &Block, name: &Name) -> bool {
    let Some(resource) = config.resources.get(block) else { return true };
    let Some(item) = resource.attributes.get(name) else { return false };
    let mut open: Vec<&Expr> = vec![&item.value.expr];
    let mut seen = std::collections::BTreeSet::new();
    let mut is_secret = false;
    while let Some(expr) = open.pop() {
        roots(expr, &mut |root, _| match root {
            Root::Var(name) => {
                is_secret |= config.variables.get(name).is_none_or(|it| it.sensitive);
            }
            Root::Local(name) if seen.insert(name) => {
                open.extend(config.locals.get(name).map(|local| &local.value.expr));
            }
            _ => {}
        });
    }
    is_secret
}
