//! Templates of a descriptor: values, and paths whose parts are filled in and percent-encoded.
//!
//! A filled part never becomes syntax: a segment is encoded as a whole, so no value can add a segment, a
//! query or another host. A segment that is empty or consists of dots is refused, because servers and clients
//! read it as a step in the path.

use std::collections::BTreeSet;

use engine::address::{Block, Name};
use engine::expression::evaluate::{self, Scope};
use engine::expression::parse::{self, Dialect};
use engine::expression::{Expr, ExprError, Kind, Root, visit::walk};
use engine::value::{Attributes, Datum, Value};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// The characters that are not encoded in a segment or a query: those that RFC 3986 does not reserve.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The name of the nonce of a create.
pub(crate) const ONE_TIME: &str = "one_time";

/// The name of the parent of a list.
pub(crate) const PARENT: &str = "parent";

/// The name of the object of a wait.
pub(crate) const SELF: &str = "self";

/// The name of the element of a set that a call adds or removes.
pub(crate) const ELEMENT: &str = "element";

/// The name of the answer that began an operation, or that shows it.
pub(crate) const ANSWER: &str = "answer";

/// A value with parts to fill in.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ValueTemplate(pub(crate) Expr);

/// The path and query of a request.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PathTemplate {
    pub(crate) segments: Vec<ValueTemplate>,
    pub(crate) query: Vec<(String, ValueTemplate)>,
}

/// The reason that a template cannot be filled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unfilled(pub(crate) String);

impl ValueTemplate {
    /// Reads a text; a text without parts is a literal.
    pub(crate) fn parse(text: &str) -> Result<Self, ExprError> {
        if !text.contains("${") && !text.contains("%{") {
            return Ok(Self(Expr::literal(Value::string(text))));
        }
        parse::template(text, Dialect::Names).map(Self)
    }

    /// Returns the value for an object.
    pub(crate) fn fill(&self, scope: &dyn Scope) -> Result<Value, Unfilled> {
        match evaluate::evaluate(&self.0, scope) {
            Ok(datum) => Ok(datum.value),
            Err(error) => Err(match self.lacking(scope) {
                Some(Unfilled(lacking)) => Unfilled(format!("{lacking}: {}", error.message)),
                None => Unfilled(error.message),
            }),
        }
    }

    /// Returns a description of the first name in it that is not known.
    fn lacking(&self, scope: &dyn Scope) -> Option<Unfilled> {
        let is_null = |name: &Name| {
            let datum = scope.root(&Root::Named(name.clone()));
            datum.is_ok_and(|datum| datum.value.is_null())
        };
        let lacking = names(&self.0).into_iter().find(is_null);
        lacking.map(|name| Unfilled(format!("`{name}` is not known")))
    }

    /// Returns the text as a part of a path, which is never empty and never consists of dots.
    fn segment(&self, scope: &dyn Scope) -> Result<String, Unfilled> {
        let part = self.text(scope)?.unwrap_or_default();
        if !part.chars().all(|letter| letter == '.') {
            return Ok(part);
        }
        let odd = || match names(&self.0).first() {
            Some(name) => {
                Unfilled(format!("`{name}` is empty or dots, and is a part of the address"))
            }
            None => Unfilled("a part of the address is empty or dots".to_owned()),
        };
        Err(self.lacking(scope).unwrap_or_else(odd))
    }

    /// Returns the text for a path or a query; none for null.
    pub(crate) fn text(&self, scope: &dyn Scope) -> Result<Option<String>, Unfilled> {
        match self.fill(scope)? {
            Value::Null => Ok(None),
            Value::String(text) => Ok(Some(text.to_string())),
            Value::Bool(value) => Ok(Some(value.to_string())),
            Value::Integer(number) => Ok(Some(number.to_string())),
            Value::Float(number) => Ok(Some(number.to_string())),
            other => Err(Unfilled(format!("{} is no text", other.type_of()))),
        }
    }
}

impl PathTemplate {
    /// Reads `/things/${id}?full=true`.
    pub(crate) fn parse(text: &str) -> Result<Self, ExprError> {
        let fail = |message: &str| ExprError {
            range: engine::expression::Range::default(),
            message: message.to_owned(),
            help: Some("write it like /things/${id}?full=true".to_owned()),
            meant: None,
        };
        let (path, query) = match split(text, '?').as_slice() {
            [path] => (*path, None),
            [path, query] => (*path, Some(*query)),
            _ => return Err(fail("the path has two question marks")),
        };
        let path = path.strip_prefix('/').ok_or_else(|| fail("the path begins with no slash"))?;
        let segments = split(path, '/').into_iter().map(ValueTemplate::parse);
        let mut pairs = Vec::new();
        for pair in query.map(|query| split(query, '&')).unwrap_or_default() {
            let (name, value) =
                pair.split_once('=').ok_or_else(|| fail("a part of the query has no `=`"))?;
            pairs.push((name.to_owned(), ValueTemplate::parse(value)?));
        }
        Ok(Self { segments: segments.collect::<Result<_, _>>()?, query: pairs })
    }

    /// Returns the path without values: `…` stands for each filled part.
    pub(crate) fn words(&self) -> String {
        let word = |template: &ValueTemplate| match &template.0.kind {
            Kind::Literal(value) => value.as_str().unwrap_or("…").to_owned(),
            _ => "…".to_owned(),
        };
        self.segments.iter().fold(String::new(), |text, segment| text + "/" + &word(segment))
    }

    /// Returns the encoded path and query, which are appended to an address.
    pub(crate) fn fill(&self, scope: &dyn Scope) -> Result<String, Unfilled> {
        self.fill_each(scope, scope)
    }

    /// Returns the encoded path and query, with different scopes for the two.
    pub(crate) fn fill_each(
        &self,
        path: &dyn Scope,
        query: &dyn Scope,
    ) -> Result<String, Unfilled> {
        let mut text = String::new();
        for segment in &self.segments {
            text.push('/');
            text.extend(utf8_percent_encode(&segment.segment(path)?, RESERVED));
        }
        let mut mark = '?';
        for (name, value) in &self.query {
            if let Some(value) = value.text(query)? {
                text.push(mark);
                text.push_str(&query_pair(name, &value));
                mark = '&';
            }
        }
        Ok(text)
    }
}

/// Returns one encoded `name=value`.
pub(crate) fn query_pair(name: &str, value: &str) -> String {
    format!("{}={}", utf8_percent_encode(name, RESERVED), utf8_percent_encode(value, RESERVED))
}

/// Splits at a character outside `${…}`.
fn split(text: &str, separator: char) -> Vec<&str> {
    let (mut parts, mut depth, mut start, mut quoted) = (Vec::new(), 0_usize, 0, false);
    for (index, letter) in text.char_indices() {
        match letter {
            '"' if depth > 0 => quoted = !quoted,
            '{' if !quoted && (depth > 0 || text[..index].ends_with('$')) => depth += 1,
            '}' if !quoted => depth = depth.saturating_sub(1),
            _ if letter == separator && depth == 0 => {
                parts.push(&text[start..index]);
                start = index + letter.len_utf8();
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

/// The scope of the templates of a call: the desired object, else the live one; its id; and the nonce of a
/// create.
#[derive(Clone, Copy, Default)]
pub(crate) struct CallScope<'a> {
    pub(crate) desired: Option<&'a Attributes>,
    pub(crate) live: Option<&'a Attributes>,
    pub(crate) id: Option<&'a str>,
    pub(crate) id_attribute: Option<&'a str>,
    pub(crate) nonce: Option<&'a str>,
    /// The parent of the list; none for other calls.
    pub(crate) parent: Option<&'a Attributes>,
    /// The element of a set that a call adds or removes; none for other calls.
    pub(crate) element: Option<&'a Value>,
    /// The answer that began an operation; none for other calls.
    pub(crate) answer: Option<&'a Value>,
}

impl CallScope<'_> {
    /// Returns the value of an attribute: the desired one, else the live one.
    pub(crate) fn attribute(&self, name: &str) -> Option<&Value> {
        let wanted = self.desired.and_then(|desired| desired.get(name));
        wanted.or_else(|| self.live.and_then(|live| live.get(name)))
    }
}

/// The scope of the path of a call: attributes that name the object have their live values.
pub(crate) struct PathScope<'a> {
    pub(crate) call: CallScope<'a>,
    /// The attributes that name the object.
    pub(crate) naming: &'a BTreeSet<Name>,
}

impl PathScope<'_> {
    /// Returns the live value of an attribute that names the object, if it is known.
    fn as_it_is(&self, name: &Name) -> Option<&Value> {
        let live = self.call.live.filter(|_| self.naming.contains(name))?.get(name)?;
        Some(live).filter(|live| !live.is_null() && live.is_known() && !live.holds_sealed())
    }
}

impl Scope for PathScope<'_> {
    fn root(&self, root: &Root) -> Result<Datum, String> {
        let Root::Named(name) = root else { return self.call.root(root) };
        self.as_it_is(name).map_or_else(|| self.call.root(root), |live| Ok(live.clone().into()))
    }

    fn resource(&self, block: &Block, key: Option<&str>) -> Result<Datum, String> {
        self.call.resource(block, key)
    }
}

impl Scope for CallScope<'_> {
    fn root(&self, root: &Root) -> Result<Datum, String> {
        let Root::Named(name) = root else { return Err(format!("{root:?} means nothing here")) };
        if let (ONE_TIME, Some(nonce)) = (&**name, self.nonce) {
            return Ok(Value::string(nonce).into());
        }
        if let (ANSWER, Some(answer)) = (&**name, self.answer) {
            return Ok(answer.clone().into());
        }
        if let (ELEMENT, Some(element)) = (&**name, self.element) {
            return Ok(element.clone().into());
        }
        if let (PARENT, Some(parent)) = (&**name, self.parent) {
            return Ok(Value::map(parent.clone()).into());
        }
        if let (Some(id), true) = (self.id, self.id_attribute == Some(&**name)) {
            return Ok(Value::string(id).into());
        }
        Ok(self.attribute(name).cloned().unwrap_or(Value::Null).into())
    }

    fn resource(&self, block: &Block, _key: Option<&str>) -> Result<Datum, String> {
        Err(format!("{block} means nothing here"))
    }
}

/// A scope of a few names.
pub(crate) struct Given<'a>(pub(crate) &'a [(&'a str, Value)]);

impl Scope for Given<'_> {
    fn root(&self, root: &Root) -> Result<Datum, String> {
        let Root::Named(name) = root else { return Err(format!("{root:?} means nothing here")) };
        match self.0.iter().find(|(given, _)| *given == &**name) {
            Some((_, value)) => Ok(value.clone().into()),
            None => Err(format!("there is no `{name}` here")),
        }
    }

    fn resource(&self, block: &Block, _key: Option<&str>) -> Result<Datum, String> {
        Err(format!("{block} means nothing here"))
    }
}

/// Returns the first words of an expression's references, without the variables of its `for`s.
pub(crate) fn names(expr: &Expr) -> Vec<Name> {
    let (mut names, mut bound) = (Vec::new(), Vec::new());
    walk(expr, &mut |part| match &part.kind {
        Kind::Root(Root::Named(name)) => names.push(name.clone()),
        Kind::For(parts) => {
            bound.extend(parts.key_variable.clone());
            bound.push(parts.value_variable.clone());
        }
        _ => {}
    });
    names.retain(|name| !bound.contains(name));
    names
}

/// Returns the attributes of one name in an expression, such as `id` in `parent.id`.
pub(crate) fn members(expr: &Expr, of: &str) -> Vec<Name> {
    let mut members = Vec::new();
    walk(expr, &mut |part| {
        if let Kind::Attribute(base, name) = &part.kind
            && matches!(&base.kind, Kind::Root(Root::Named(root)) if &**root == of)
        {
            members.push(name.clone());
        }
    });
    members
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(template: &str, pairs: &[(&str, Value)]) -> Result<String, Unfilled> {
        let attributes =
            pairs.iter().map(|(name, value)| (Name::from(*name), value.clone())).collect();
        let scope = CallScope { desired: Some(&attributes), ..CallScope::default() };
        PathTemplate::parse(template).unwrap().fill(&scope)
    }

    #[test]
    fn values_never_become_syntax() {
        for (id, path) in [
            ("abc", "/things/abc"),
            ("a/b", "/things/a%2Fb"),
            ("a?x=1#y", "/things/a%3Fx%3D1%23y"),
            ("ü %", "/things/%C3%BC%20%25"),
            ("a\r\nHost: evil", "/things/a%0D%0AHost%3A%20evil"),
            ("@evil.example", "/things/%40evil.example"),
        ] {
            assert_eq!(fill("/things/${id}", &[("id", Value::string(id))]).unwrap(), path);
        }
        for id in ["", ".", ".."] {
            assert!(fill("/things/${id}", &[("id", Value::string(id))]).is_err(), "{id}");
        }
        assert!(fill("/things/${id}", &[]).is_err());
    }

    #[test]
    fn queries_leave_out_what_is_null() {
        let template = "/things?full=true&name=${name}&tag=${tag}&n=${n}";
        let filled = fill(template, &[("name", Value::string("a&b")), ("n", Value::Integer(3))]);
        assert_eq!(filled.unwrap(), "/things?full=true&name=a%26b&n=3");
    }

    #[test]
    fn separators_inside_expressions_do_not_split() {
        assert_eq!(split("/a/${x[\"/\"]}/b", '/'), ["", "a", "${x[\"/\"]}", "b"]);
        assert_eq!(split("/a/${x ? y : z}?q=1", '?'), ["/a/${x ? y : z}", "q=1"]);
    }

    #[test]
    fn mistakes_in_paths_are_found() {
        for text in ["things", "/a?b", "/a?b=1?c=2"] {
            assert!(PathTemplate::parse(text).is_err(), "{text}");
        }
    }
}
