//! Errors of blocks: types, attributes, references and cycles.

use super::{listed, plainly, shown};
use crate::address::{Address, AddressError, Block};
use crate::config::provider_choice;
use crate::diagnostics::{Advice, Diagnostic, Span};
use crate::types::Type;

/// A key of an object that is computed.
pub fn computed_key(at: Span) -> Diagnostic {
    Diagnostic::error("expected a plain name")
        .at(at)
        .label("attribute names of an object cannot be computed")
}

/// A nested attribute that an object does not have.
pub fn unknown_nested_attribute<'a>(
    name: &str,
    at: Span,
    known: impl IntoIterator<Item = &'a str> + Clone,
) -> Diagnostic {
    Diagnostic::error("unknown attribute")
        .at(at)
        .label(format!("there is no attribute `{}` here", shown(name)))
        .choices(name, known)
}

/// Nested attributes that are missing.
pub fn missing_nested(names: &[&str], at: Span) -> Diagnostic {
    let names = listed(names.iter().copied());
    Diagnostic::error("missing attribute").at(at).label(format!("it needs {names}"))
}

/// An attribute that a type does not have.
pub fn unknown_attribute<'a>(
    ty: &str,
    name: &str,
    at: Span,
    known: impl IntoIterator<Item = &'a str> + Clone,
) -> Diagnostic {
    let diagnostic = Diagnostic::error("unknown attribute")
        .at(at)
        .label(format!("`{ty}` has no attribute `{}`", shown(name)));
    match name {
        "count" => diagnostic.help(COUNT),
        _ => diagnostic.choices(name, known),
    }
}

/// The advice in place of a word that other tools know.
const COUNT: &str = "write `for_each = [\"a\", \"b\"]` for one instance by each name, or \
                     `lifecycle = { enabled = … }` for one or none";

/// Returns what to write in place of a reference that other tools know.
pub fn meant_elsewhere(first: &str, second: &str) -> Option<&'static str> {
    match (first, second) {
        ("path", _) => {
            Some("a path is relative to the spec's folder by itself: file(\"some/path\")")
        }
        ("count", "index") => Some("write `each.key`, in a resource with `for_each`"),
        ("terraform", "workspace") => Some(
            "write a variable, such as `var.env`: an environment has a folder of its own, or a place of its own for its state",
        ),
        _ => None,
    }
}

/// Several instances of a type of which there is one object.
pub fn several_singletons(block: &Block, at: Span) -> Diagnostic {
    let ty = &block.ty;
    Diagnostic::error(format!("there is one {ty} in an account"))
        .at(at)
        .label(format!("all instances of {block} would be that one"))
        .help("remove `for_each`; another account is another provider: provider = \"NAME\"")
}

/// A second block for an object of which there is one.
pub fn singleton_twice(block: &Block, at: Span, earlier: Span) -> Diagnostic {
    let ty = &block.ty;
    Diagnostic::error(format!("there is one {ty} in an account"))
        .at(at)
        .label(format!("{block} would be the object of another block"))
        .related(earlier, "this block stands for it")
        .help("remove one of the two; another account is another provider: provider = \"NAME\"")
}

/// A resource of a type that can be looked up only.
pub fn data_only(block: &Block, at: Span) -> Diagnostic {
    let Block { ty, name, .. } = block;
    Diagnostic::error("this type is not managed")
        .at(at)
        .label(format!("a `{ty}` can be looked up, and not be made"))
        .help(format!("write `[data.{ty}.{name}]`, and refer to `data.{ty}.{name}`"))
}

/// An attribute that only the provider sets.
pub fn computed_attribute(name: &str, at: Span) -> Diagnostic {
    Diagnostic::error("a computed attribute cannot be given")
        .at(at)
        .label(format!("the provider sets `{name}`"))
        .help("remove it; other resources can refer to it")
}

/// Attributes that must be given and are not.
pub fn missing_attributes(ty: &str, names: &[&str], at: Span) -> Diagnostic {
    let names = listed(names.iter().copied());
    Diagnostic::error("missing attribute")
        .at(at)
        .label(format!("`{ty}` needs {names}"))
        .help("add the missing lines to this block")
}

/// A backend of the state that there is not.
pub fn unknown_backend<'a>(
    name: &str,
    at: Span,
    known: impl IntoIterator<Item = &'a str> + Clone,
) -> Diagnostic {
    Diagnostic::error("unknown backend")
        .at(at)
        .label(format!("there is no state backend `{}`", shown(name)))
        .choices(name, known)
}

/// A key of `[state]` that its backend does not know.
pub fn unknown_state_key<'a>(
    backend: &str,
    key: &str,
    at: Span,
    known: impl IntoIterator<Item = &'a str> + Clone,
) -> Diagnostic {
    let diagnostic = Diagnostic::error("unknown attribute")
        .at(at)
        .label(format!("the backend `{backend}` has no attribute `{}`", shown(key)));
    match known.clone().into_iter().next() {
        Some(_) => diagnostic.choices(key, known),
        None => diagnostic.help("it has none"),
    }
}

/// A key of `[state]` that is or holds a credential.
pub fn secret_in_state(key: &str, at: Span) -> Diagnostic {
    Diagnostic::error("a credential in the spec")
        .at(at)
        .label(format!("`{}` would be visible to everyone who can read the spec", shown(key)))
        .help(
            "leave it out and set it in the environment: PLUMB_STATE_URL or PGPASSWORD, AWS_*, \
             GOOGLE_*, AZURE_*",
        )
}

/// A value of `[state]` that says nothing.
pub fn empty_state_value(key: &str, at: Span) -> Diagnostic {
    Diagnostic::error("empty value")
        .at(at)
        .label(format!("`{key}` is empty"))
        .help("give it a value")
}

/// A lifetime of a lock that is too short or too long.
pub fn bad_lock_ttl(at: Span) -> Diagnostic {
    Diagnostic::error("invalid lock lifetime")
        .at(at)
        .label("write 1 to 3600 seconds")
        .help("15 is the default")
}

/// A number that no port has.
pub fn bad_port(at: Span) -> Diagnostic {
    Diagnostic::error("invalid port")
        .at(at)
        .label("write a number from 0 to 65535")
        .help("5432 is usual")
}

/// A key that a block must have.
pub fn missing_key(what: &str, key: &str, at: Span) -> Diagnostic {
    Diagnostic::error("missing key")
        .at(at)
        .label(format!("{what} has no `{key}`"))
        .help(format!("add `{key} = …`"))
}

/// An import of an object, or to an address, that another import names.
pub fn imported_twice(at: Span, first: Span) -> Diagnostic {
    Diagnostic::error("imported twice")
        .at(at)
        .label("another import names the same object or the same address")
        .related(first, "this one")
        .help("keep one of them")
}

/// An id that cannot be one.
pub fn bad_id(why: &str, at: Span) -> Diagnostic {
    Diagnostic::error("invalid id")
        .at(at)
        .label(why.to_owned())
        .help("write the id as the API shows it")
}

/// An import that says twice which object it means.
pub fn import_by_both(at: Span) -> Diagnostic {
    Diagnostic::error("an import by id and by name")
        .at(at)
        .label("`id` says already which object is meant")
        .help("keep one of the two")
}

/// An import by name of a type whose objects have none.
pub fn import_of_nameless(ty: &str, at: Span) -> Diagnostic {
    Diagnostic::error("an import by name")
        .at(at)
        .label(format!("an object of type `{ty}` has no name to find it by"))
        .help("give its `id`")
}

/// A part of an import that is made of a secret.
pub fn import_of_a_secret(key: &str, at: Span) -> Diagnostic {
    Diagnostic::error("an import cannot hold a secret")
        .at(at)
        .label(format!("`{key}` is made of a secret, and it would be shown"))
        .help("write it without the secret")
}

/// A part of an import that cannot be computed before planning.
pub fn import_not_known(key: &str, why: &str, at: Span) -> Diagnostic {
    Diagnostic::error("an import must be known before planning")
        .at(at)
        .label(format!("`{key}`: {why}"))
        .help("make it of variables, locals and files")
}

/// An import to a resource that the spec does not have.
pub fn import_of_nothing(block: &Block, advice: Advice, at: Span) -> Diagnostic {
    Diagnostic::error("import to an unknown resource")
        .at(at)
        .label(format!("there is no resource `{}`", shown(&block.to_string())))
        .help(advice)
}

/// An import with a key where there are none, or without one.
pub fn import_key(address: &Address, keyed: bool, at: Span) -> Diagnostic {
    let block = &address.block;
    let diagnostic = Diagnostic::error("an import names one instance").at(at);
    if keyed {
        return diagnostic
            .label(format!("`{block}` has for_each, and this names all its instances"))
            .help(format!("write the key, too: `{block}[KEY]`"));
    }
    diagnostic
        .label(format!("`{block}` has no for_each, so it has no keys"))
        .help(format!("write `{block}`"))
}

/// A resource type that no provider has.
pub fn unknown_type<'a>(
    ty: &str,
    known: impl IntoIterator<Item = &'a str> + Clone,
    at: Span,
) -> Diagnostic {
    Diagnostic::error("unknown resource type")
        .at(at)
        .label(format!("no provider has the type `{}`", shown(ty)))
        .choices(ty, known)
}

/// A `severity` that there is not.
pub fn unknown_severity(word: &str, at: Span, known: &[&str]) -> Diagnostic {
    Diagnostic::error("unknown severity")
        .at(at)
        .label(format!("there is no severity `{}`", shown(word)))
        .choices(word, known.iter().copied())
}

/// A table in a policy file that is no policy.
pub fn not_a_policy(at: Span) -> Diagnostic {
    Diagnostic::error("a policy file holds only policies")
        .at(at)
        .label("this is no policy")
        .help("write `[policy.NAME]` here, and put the rest into the spec")
}

/// A resource type that several provider instances have.
pub fn several_providers(ty: &str, instances: &[&str], at: Span) -> Diagnostic {
    let first = instances.first().copied().unwrap_or("NAME");
    Diagnostic::error("several providers have this type")
        .at(at)
        .label(format!("`{ty}` is a type of {}", listed(instances.iter().copied())))
        .help(match provider_choice::base(first) {
            base if base == first => format!("choose one: `provider = \"{first}\"`"),
            base => format!(
                "choose one: `provider = {}`, or, with `for_each`, `provider = '{base}[\"${{each.key}}\"]'`",
                provider_choice::quoted(first)
            ),
        })
}

/// A `provider` that is computed from more than the key.
pub fn computed_provider(at: Span) -> Diagnostic {
    Diagnostic::error("a provider cannot be computed")
        .at(at)
        .label("which one manages an object is known by its address alone")
        .help("write `\"NAME\"`, `'NAME[\"KEY\"]'`, or `'NAME[\"${each.key}\"]'` with the keys of this block's `for_each`")
}

/// A `provider` by `each.key` in a block that has one instance.
pub fn provider_without_key(at: Span) -> Diagnostic {
    Diagnostic::error("`each.key` in a block without `for_each`")
        .at(at)
        .label("this block has no keys")
        .help("write the key itself, or give the block a `for_each`")
}

/// A `for_each` of a provider that gives no keys.
pub fn unusable_for_each(why: &str, at: Span) -> Diagnostic {
    Diagnostic::error("for_each cannot be used")
        .at(at)
        .label(why)
        .help("give a table or a list of distinct strings, computed from variables and locals")
}

/// A provider whose `for_each` is empty.
pub fn provider_without_instances(name: &str, at: Span) -> Diagnostic {
    Diagnostic::error("a provider without instances")
        .at(at)
        .label(format!("`{name}` could manage nothing"))
        .help("give `for_each` a key, or remove the block")
}

/// A provider instance that is not there.
pub fn unknown_provider<'a>(
    name: &str,
    at: Span,
    known: impl IntoIterator<Item = &'a str> + Clone,
) -> Diagnostic {
    Diagnostic::error("unknown provider")
        .at(at)
        .label(format!("there is no provider `{}`", shown(name)))
        .choices(name, known)
}

/// A type that the chosen provider instance does not have.
pub fn not_of_provider<'a>(
    ty: &str,
    instance: &str,
    known: impl IntoIterator<Item = &'a str> + Clone,
    at: Span,
) -> Diagnostic {
    Diagnostic::error("unknown resource type")
        .at(at)
        .label(format!("the provider `{instance}` has no type `{}`", shown(ty)))
        .choices(ty, known)
}

/// A `for_each` that gives no keys.
pub fn bad_for_each(found: &Type, at: Span) -> Diagnostic {
    Diagnostic::error("wrong type")
        .at(at)
        .label(format!("`for_each` takes a table or a list of strings, found {}", plainly(found)))
        .help("write `[\"a\", \"b\"]` or `{ a = …, b = … }`")
}

/// A key of `for_each` that is there already.
pub fn repeated_key(key: &str, at: Span, first: Span) -> Diagnostic {
    Diagnostic::error("duplicate key")
        .at(at)
        .label(format!("`{}` is in the list already", shown(key)))
        .related(first, "first here")
        .help("remove one of the two")
}

/// Something else where a list of texts must stand.
pub fn not_a_list(what: &str, at: Span) -> Diagnostic {
    Diagnostic::error("expected a list of texts")
        .at(at)
        .label(format!("{what} is a list of plain texts"))
        .help("write `[\"…\", \"…\"]`, without `${…}`")
}

/// Something else where a table must stand.
pub fn not_a_table(what: &str, at: Span) -> Diagnostic {
    Diagnostic::error("expected a table")
        .at(at)
        .label(format!("`{what}` must be a table"))
        .help(format!("write `{what} = {{ KEY = VALUE }}`"))
}

/// Something else where references must stand.
pub fn not_references(at: Span) -> Diagnostic {
    Diagnostic::error("expected references")
        .at(at)
        .label("`replace_triggered_by` is a list of references to resources or their attributes")
        .help("write `[\"${TYPE.NAME.ATTRIBUTE}\"]`")
}

/// A data block where the resource must stand whose change replaces another.
pub fn trigger_of_data(at: Span) -> Diagnostic {
    Diagnostic::error("expected references")
        .at(at)
        .label("this is looked up, and no plan changes it")
        .help("name a resource; what an attribute takes from data is compared anyway")
}

/// A data block where only objects of the state are seen.
pub fn data_in_check(at: Span) -> Diagnostic {
    Diagnostic::error("a check does not see data")
        .at(at)
        .label("this is looked up while planning, and checks run after an apply")
        .help(
            "assert something of a resource, or let the check ask by itself: `http = { url = … }`",
        )
}

/// A resource that is to be replaced when it changes itself.
pub fn own_trigger(at: Span) -> Diagnostic {
    Diagnostic::error("a resource cannot trigger itself")
        .at(at)
        .label("this is the resource that would be replaced")
        .help("name another resource, or remove it")
}

/// A text that is no address.
pub fn bad_address(error: &AddressError, at: Span) -> Diagnostic {
    Diagnostic::error("invalid address").at(at).label(error.to_string())
}

/// The address of a resource that is not there.
pub fn no_resource(message: &str, advice: Advice, at: Span) -> Diagnostic {
    Diagnostic::error("unknown resource").at(at).label(message.to_owned()).help(advice)
}

/// The address of an instance of a resource that has no instances by key.
pub fn no_instances(block: &Block, at: Span) -> Diagnostic {
    Diagnostic::error("unknown resource")
        .at(at)
        .label(format!("`{block}` has no `for_each`, so it has no keys"))
        .help(format!("write `{block}`"))
}

/// Members of a cycle in order, each with the place where it refers to the next; `size` counts
/// all that are caught in it.
pub fn cycle(members: &[(String, Span)], size: usize) -> Diagnostic {
    const SHOWN: usize = 20;
    let mut names: Vec<&str> = members.iter().take(SHOWN).map(|(name, _)| &**name).collect();
    let more = members.len().saturating_sub(SHOWN);
    let rest = format!("{more} more");
    if more > 0 {
        names.push(&rest);
    }
    names.extend(members.first().map(|(name, _)| &**name));
    let detail = format!("They depend on each other: {}.", names.join(" → "));
    let diagnostic = Diagnostic::error("a cycle")
        .at(members.first().map(|(_, at)| *at))
        .label("this reference begins it")
        .detail(if size > members.len() {
            format!("{detail} {} more are caught in it.", size - members.len())
        } else {
            detail
        })
        .help("remove one of the references, or move the shared part into a third resource");
    members.iter().skip(1).take(SHOWN).fold(diagnostic, |diagnostic, (name, at)| {
        diagnostic.related(*at, format!("`{name}` refers to the next here"))
    })
}
