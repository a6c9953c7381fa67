//! The text of a descriptor.

use std::fmt::Write as _;

use crate::attribute::{AttributeDraft, Presence, quoted};
use crate::auth::Auth;
use crate::calls::Line;
use crate::draft::TypeDraft;
use crate::marks::MESSAGE;
use crate::types::Naming;

/// The mark of a fact that a document does not give.
pub const TO_PROVE: &str = "# to prove";

/// The parts of a descriptor without its types.
pub(crate) struct Head<'s> {
    pub(crate) title: String,
    pub(crate) provider: &'s str,
    pub(crate) address: Option<String>,
    pub(crate) auth: &'s Auth,
    pub(crate) naming: Naming,
    pub(crate) messages: &'s [&'static str],
}

/// A type with its name, and the name of its parent.
pub(crate) struct NamedType<'s> {
    pub(crate) name: &'s str,
    pub(crate) parent: Option<&'s str>,
    pub(crate) draft: &'s TypeDraft,
}

/// Writes a descriptor.
pub(crate) fn descriptor(head: &Head<'_>, types: &[NamedType<'_>]) -> String {
    let mut text = self::head(head);
    for ty in types {
        text.push_str(&type_text(ty));
    }
    text
}

fn head(head: &Head<'_>) -> String {
    let mut text = format!(
        "# {}: a descriptor that `plumb provider from-openapi` wrote.\n#\n# The document does not tell what is marked \
         `to prove`: see `plumb provider prove`.\n\n[provider]\nname = {}\n",
        head.title,
        quoted(head.provider),
    );
    for key in &head.auth.keys {
        let _ = writeln!(text, "{key}");
    }
    let env = head.provider.to_uppercase().replace('-', "_");
    let default =
        head.address.as_ref().map_or(String::new(), |url| format!(", default = {}", quoted(url)));
    let _ = writeln!(
        text,
        "\n[api.rest]\naddress = {{ env = \"{env}_URL\", setting = \"url\"{default} }}"
    );
    if let Some(auth) = &head.auth.value {
        line(&mut text, "auth", auth, head.auth.proof);
    }
    if head.naming == Naming::Camel {
        text.push_str("names = \"camel\"\n");
    }
    match head.messages {
        [] => line(&mut text, "message", "[\"message\", \"error\", \"detail\"]", Some(MESSAGE)),
        [one] => line(&mut text, "message", &quoted(one), None),
        several => {
            let places: Vec<String> = several.iter().map(|place| quoted(place)).collect();
            line(&mut text, "message", &format!("[{}]", places.join(", ")), None);
        }
    }
    text
}

fn line(text: &mut String, key: &str, value: &str, proof: Option<&str>) {
    let _ = write!(text, "{key} = {value}");
    if let Some(proof) = proof {
        let _ = write!(text, " {TO_PROVE}: {proof}");
    }
    text.push('\n');
}

fn type_text(ty: &NamedType<'_>) -> String {
    let (name, draft) = (ty.name, ty.draft);
    let mut text = format!("\n[type.{name}]\n");
    if let Some(description) = &draft.description {
        line(&mut text, "description", &quoted(description), None);
    }
    if let Some((parent, of)) = draft.parent.as_ref().zip(ty.parent) {
        let pairs: Vec<String> =
            parent.attributes.iter().map(|(own, theirs)| format!("{own} = \"{theirs}\"")).collect();
        let pairs = pairs.join(", ");
        let _ = writeln!(text, "parent = {{ type = \"{of}\", attributes = {{ {pairs} }} }}");
    }
    let texts = &draft.texts;
    if texts.management.is_none() {
        text.push_str("data_only = true\n");
    }
    let mut put =
        |key: &str, value: &Line| line(&mut text, key, &value.value, value.proof.as_deref());
    put("list", &list(draft));
    texts.read.iter().for_each(|read| put("read", read));
    if draft.key != "id" {
        put("key", &Line { value: quoted(&draft.key), proof: None });
    }
    if let Some(management) = &texts.management {
        put("identity", &management.identity);
        put("create", &management.create);
        management.update.iter().for_each(|update| put("update", update));
        put("delete", &management.delete);
    }
    let _ = writeln!(text, "\n[type.{name}.attribute]");
    for attribute in &draft.attributes {
        text.push_str(&attribute_text(attribute));
    }
    text
}

/// Returns the call that lists, with the attributes of the parent in its path.
fn list(draft: &TypeDraft) -> Line {
    let theirs = draft.parent.iter().flat_map(|parent| &parent.attributes);
    let mut line = draft.texts.list.clone();
    for (_, theirs) in theirs {
        line.value = line.value.replacen("{}", &format!("${{parent.{theirs}}}"), 1);
    }
    line
}

fn attribute_text(attribute: &AttributeDraft) -> String {
    let mut pairs = vec![format!("type = {}", quoted(&attribute.ty))];
    match attribute.presence {
        Presence::Required => pairs.push("required = true".to_owned()),
        Presence::Computed => pairs.push("computed = true".to_owned()),
        Presence::Optional => {}
    }
    pairs.extend(attribute.keys.iter().map(|(key, value)| format!("{key} = {value}")));
    let mut text = String::new();
    let proof = (!attribute.proofs.is_empty()).then(|| attribute.proofs.join("; "));
    line(&mut text, &attribute.name, &format!("{{ {} }}", pairs.join(", ")), proof.as_deref());
    text
}

/// Returns the number of marks in a text.
pub(crate) fn marks(ty: &NamedType<'_>) -> usize {
    type_text(ty).matches(TO_PROVE).count()
}
