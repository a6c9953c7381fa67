//! The attribute for a parameter of a path.

use crate::names::{singular, snake};
use crate::shape::{Kind, Properties, Shapes};

/// The attributes that may hold an id, the best first.
const IDS: [&str; 7] = ["id", "uuid", "_id", "name", "key", "slug", "login"];
/// The attributes that may hold the name of a user.
const USERS: [&str; 2] = ["login", "username"];

/// A place in an answer: the name of a property, and of one below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place<'a> {
    pub(crate) name: &'a str,
    pub(crate) below: Option<&'a str>,
}

impl Place<'_> {
    /// The path on the wire.
    pub(crate) fn wire(&self) -> String {
        self.below.map_or_else(|| self.name.to_owned(), |below| format!("{}.{below}", self.name))
    }
}

/// Returns the place in an object that shows the value of a parameter of its path; `kind` is the kind of the
/// parameter.
pub(crate) fn place<'a>(
    shapes: &Shapes<'a>,
    (parameter, kind): (&str, Kind),
    noun: &str,
    shown: &Properties<'a>,
) -> Option<Place<'a>> {
    let parameter = snake(parameter)?;
    let kind_of = |name: &str| shapes.of_property(&shown[name]).kind();
    let is_scalar = |name: &str| matches!(kind_of(name), Kind::Text | Kind::Integer | Kind::Any);
    let named = |wanted: &str| {
        let mut names = shown.keys().copied().filter(|name| !name.contains('.'));
        names.find(|name| snake(name).as_deref() == Some(wanted) && is_scalar(name))
    };
    let direct = |name| Place { name, below: None };
    if let Some(name) = named(&parameter) {
        return Some(direct(name));
    }
    if let Some(place) = below(shapes, &parameter, shown) {
        return Some(place);
    }
    let last = parameter.rsplit('_').next().unwrap_or_default();
    if let Some(name) = (last != parameter).then(|| named(last)).flatten() {
        return Some(direct(name));
    }
    let is_noun = singular(&parameter) == noun || noun.ends_with(&singular(&parameter));
    if !(IDS.contains(&last) || last.ends_with("id") || last == "username" || is_noun) {
        return None;
    }
    let users = USERS.iter().filter(|_| last == "username");
    let ids = users.chain(&IDS).filter_map(|id| {
        shown.keys().copied().find(|name| name == id).filter(|name| is_scalar(name))
    });
    let ids: Vec<&str> = ids.chain(named("id")).collect();
    // A number does not fit into a path such as `/repos/{repo}` whose parameter is a text.
    let best = ids.iter().find(|name| kind_of(name) == kind).or(ids.first());
    best.copied().map(direct)
}

/// Returns the place of an id below a property, such as `owner.login`.
fn below<'a>(shapes: &Shapes<'a>, parameter: &str, shown: &Properties<'a>) -> Option<Place<'a>> {
    let mut names = shown.iter().filter(|(name, _)| !name.contains('.'));
    let (name, property) = names.find(|(name, _)| snake(name).as_deref() == Some(parameter))?;
    let inner = shapes.of_property(property);
    let order = ["login", "slug", "name", "id"];
    let id = order.iter().find_map(|id| inner.properties.get_key_value(id))?;
    Some(Place { name, below: Some(id.0) })
}
