//! The facts about types and attributes in words, for schemas, hovers and completions.

use engine::config::RawBlock;
use engine::config::constant::constant;
use engine::schema::{Attribute, Constraint, OnChange, Presence};
use engine::stored::to_json;

/// The facts about an attribute, in a few words each.
pub fn facts(attribute: &Attribute) -> Vec<String> {
    let mut facts = vec![attribute.ty.to_string(), presence(attribute.presence).to_owned()];
    facts.extend(attribute.unit.as_ref().map(|unit| format!("in {unit}")));
    facts.extend(bounds(&attribute.constraint));
    let nulls = attribute.nulls.iter().map(to_json);
    facts.extend(nulls.map(|word| format!("{word} for none")));
    if let Some(default) = attribute.default.as_ref().filter(|_| !attribute.sensitive) {
        facts.push(format!("default {}", to_json(default)));
    }
    if attribute.on_change == OnChange::Replace && attribute.presence != Presence::Computed {
        let loss = if attribute.data_loss { ", which loses data" } else { "" };
        facts.push(format!("a change replaces the object{loss}"));
    }
    if attribute.sensitive {
        facts.push("sensitive".to_owned());
    }
    facts.extend(attribute.effect.as_ref().map(|effect| format!("a change {effect}")));
    facts
}

/// The duty of a spec to give an attribute, in a word.
pub fn presence(presence: Presence) -> &'static str {
    match presence {
        Presence::Required => "required",
        Presence::Optional => "optional",
        Presence::Computed => "computed",
    }
}

fn bounds(constraint: &Constraint) -> Vec<String> {
    let mut bounds = Vec::new();
    bounds.extend(constraint.min.map(|min| format!("at least {min}")));
    bounds.extend(constraint.max.map(|max| format!("at most {max}")));
    bounds.extend(constraint.length_min.map(|min| format!("at least {min} long")));
    bounds.extend(constraint.length_max.map(|max| format!("at most {max} long")));
    bounds
}

/// An attribute in a paragraph: its description, and the facts about it.
pub fn attribute(attribute: &Attribute) -> String {
    let facts = facts(attribute).join(", ");
    match attribute.description.trim() {
        "" => format!("{facts}."),
        text => format!("{text} ({facts})"),
    }
}

/// The plain text of a key of a block; empty where there is none.
pub fn text_of(block: &RawBlock, key: &str) -> String {
    let value = block.items.get(key).and_then(|item| constant(&item.value.expr));
    value.as_ref().and_then(|value| value.as_str()).unwrap_or_default().to_owned()
}
