//! Sample attributes: values for objects that are made only to try a provider.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::address::Name;
use engine::expression::Root;
use engine::expression::visit::roots;
use engine::schema::{Attribute, Constraint, OnChange, Presence, SeenIn, TypeSchema};
use engine::types::Type;
use engine::value::{Attributes, Value};

use crate::conformance::{Fixture, Made};

/// The facts about the sample objects of one type.
#[derive(Clone, Debug)]
pub struct Sample {
    /// The type.
    pub schema: Arc<TypeSchema>,
    /// The values for the create that a person gives.
    pub given: Attributes,
    /// The values for the update that a person gives; if empty, one is chosen.
    pub changed: Attributes,
    /// The attributes that repeat those of another type: that type, and its attribute.
    pub repeated: BTreeMap<Name, (Name, Name)>,
    /// The text that names of this run contain.
    pub mark: String,
}

impl Sample {
    /// Returns the fixture of the type.
    pub fn fixture(self) -> Fixture {
        let (name, sample) = (self.schema.name.clone(), Arc::new(self));
        let changing = sample.clone();
        Fixture::trying(
            &name,
            move |made| sample.create(made),
            move |made, object| {
                if changing.changed.is_empty() {
                    return Ok(changing.change(&object.attributes));
                }
                let given = changing.changed.iter();
                given.map(|(name, value)| Ok((name.clone(), resolved(value, made)?))).collect()
            },
        )
    }

    /// Returns attributes to create an object with. The error names an attribute without a value.
    pub fn create(&self, made: &Made) -> Result<Attributes, String> {
        let mut all = Attributes::new();
        for (name, attribute) in &self.schema.attributes {
            if attribute.presence == Presence::Computed {
                continue;
            }
            if let Some(value) = self.given.get(name) {
                all.insert(name.clone(), resolved(value, made)?);
            } else if let Some((ty, theirs)) = self.repeated.get(name) {
                all.insert(name.clone(), of_made(made, ty, theirs)?);
            } else if attribute.presence == Presence::Required {
                let value = self.value(name, attribute, made);
                let value = value.ok_or_else(|| format!("no value is known for `{name}`"))?;
                all.insert(name.clone(), value);
            }
        }
        Ok(all)
    }

    /// Returns the attributes of a second object, with another name than the first. A name that is derived
    /// differs by the last text in it that is not of a list, and does not repeat a parent's.
    pub fn another(&self, made: &Made, object: &Attributes) -> Result<Attributes, String> {
        let mut wanted = self.create(made)?;
        let name = self.schema.name_attribute.as_ref();
        let derived = name.and_then(|name| self.schema.attributes.get(name)?.derived.as_ref());
        let mut parts: Vec<&Name> = name.into_iter().collect();
        if let Some(derived) = derived {
            parts.clear();
            roots(derived, &mut |root, _| {
                if let Root::Named(part) = root {
                    parts.push(part);
                }
            });
        }
        parts.retain(|part| wanted.contains_key(*part) && !self.repeated.contains_key(*part));
        let is_listed = |part: &&Name| self.schema.attributes[*part].constraint.one_of.is_some();
        let (listed, free): (Vec<_>, Vec<_>) = parts.into_iter().partition(is_listed);
        let mut others =
            free.into_iter().rev().chain(listed).filter_map(|part| {
                Some((part, object.get(part).map(|own| self.other(part, own))?))
            });
        let Some((part, other)) = others.next() else { return Ok(wanted) };
        wanted.insert(part.clone(), other.ok_or("no other name is known")?);
        Ok(wanted)
    }

    /// Returns one attribute with another value than the object has; empty if no attribute can be changed.
    pub fn change(&self, object: &Attributes) -> Attributes {
        let is_changeable = |attribute: &Attribute| {
            attribute.presence != Presence::Computed
                && attribute.on_change == OnChange::Update
                && attribute.seen_in != SeenIn::Never
                && !attribute.local
        };
        let own = self.schema.name_attribute.iter();
        let others = self.schema.attributes.keys();
        let names = own.chain(others).filter(|name| is_changeable(&self.schema.attributes[*name]));
        let mut changes = names.filter_map(|name| {
            let other = other_value(object.get(name)?, &self.schema.attributes[name])?;
            Some(Attributes::from([(name.clone(), other)]))
        });
        changes.next().unwrap_or_default()
    }

    /// Returns another value for an attribute; none if its type or its bounds allow none.
    pub fn other(&self, name: &str, value: &Value) -> Option<Value> {
        other_value(value, self.schema.attributes.get(name)?)
    }

    /// Returns three items for a list, in an order that is not sorted: the given ones, or others. None if the
    /// type of the items is not known.
    pub fn items(&self, name: &str) -> Option<Vec<Value>> {
        let attribute = self.schema.attributes.get(name)?;
        let Type::List(item) = &attribute.ty else { return None };
        let given = self.changed.get(name).or_else(|| self.given.get(name));
        if let Some(Value::List(given)) = given
            && given.len() > 1
        {
            let mut items = given.to_vec();
            items.sort_by_key(|item| std::cmp::Reverse(format!("{item:?}")));
            if items.len() > 2 {
                items.rotate_right(1);
            }
            return Some(items);
        }
        let texts: Vec<String> = match &attribute.constraint.one_of {
            Some(one_of) => one_of.values.iter().take(3).map(ToString::to_string).collect(),
            None => ["a", "b", "c"].map(|end| format!("{}-{end}", self.mark)).to_vec(),
        };
        match &**item {
            Type::String if texts.len() == 3 => {
                Some([2, 0, 1].map(|at| Value::string(&*texts[at])).to_vec())
            }
            Type::Integer => Some([3, 1, 2].map(Value::Integer).to_vec()),
            _ => None,
        }
    }

    /// Returns an attribute with a value beyond its bounds; none if no attribute has bounds.
    pub fn misfit(&self) -> Option<(Name, Value)> {
        let settable =
            self.schema.attributes.iter().filter(|(_, attribute)| {
                attribute.presence != Presence::Computed && !attribute.local
            });
        let mut found = settable.filter_map(|(name, attribute)| {
            let Constraint { one_of, min, max, .. } = &attribute.constraint;
            let number = max.map(|max| max + 1.0).or_else(|| min.map(|min| min - 1.0));
            let value = match &attribute.ty {
                Type::String if one_of.is_some() => Value::string(&*self.mark),
                #[expect(clippy::cast_possible_truncation, reason = "a bound of a descriptor")]
                Type::Integer => Value::Integer(number? as i64),
                Type::Number => Value::Float(number?),
                _ => return None,
            };
            Some((name.clone(), value))
        });
        found.next()
    }

    fn value(&self, name: &Name, attribute: &Attribute, made: &Made) -> Option<Value> {
        let referred = name.strip_suffix("_id").and_then(|ty| made.get(ty));
        if let (Some(object), Type::String) = (referred, &attribute.ty) {
            return Some(Value::string(&*object.id.0));
        }
        value(&attribute.ty, &attribute.constraint, &self.mark)
    }
}

/// Returns a value of a type within its bounds; none if the type is not known.
fn value(ty: &Type, constraint: &Constraint, mark: &str) -> Option<Value> {
    let least = constraint.min.unwrap_or(1.0);
    Some(match ty {
        Type::String => match &constraint.one_of {
            Some(one_of) => Value::string(&**one_of.values.first()?),
            None => Value::string(&*bounded(mark, constraint)),
        },
        #[expect(clippy::cast_possible_truncation, reason = "a bound beyond is refused by the API")]
        Type::Integer => Value::Integer(least.ceil() as i64),
        Type::Number => Value::Float(least),
        Type::Boolean => Value::Bool(false),
        Type::List(item) | Type::Set(item) => {
            let inner = Constraint { one_of: constraint.one_of.clone(), ..Constraint::default() };
            let count = constraint.length_min.unwrap_or_default().min(1);
            let items = (0..count).map(|_| value(item, &inner, mark));
            Value::list(items.collect::<Option<_>>()?)
        }
        Type::Map(_) => Value::map(Attributes::new()),
        Type::Object(fields) => {
            let required = fields.iter().filter(|(_, field)| !field.optional);
            let values = required.map(|(name, field)| {
                Some((name.clone(), value(&field.ty, &Constraint::default(), mark)?))
            });
            Value::map(values.collect::<Option<_>>()?)
        }
        _ => return None,
    })
}

/// Returns a text within the bounds of its length.
fn bounded(text: &str, constraint: &Constraint) -> String {
    let most = constraint.length_max.unwrap_or(usize::MAX);
    let cut = text.chars().take(most);
    let missing = constraint.length_min.unwrap_or_default().saturating_sub(text.chars().count());
    cut.chain(std::iter::repeat_n('x', missing.min(1000))).collect()
}

/// Returns another value for an attribute, within its bounds.
fn other_value(value: &Value, attribute: &Attribute) -> Option<Value> {
    let constraint = &attribute.constraint;
    match value {
        Value::Bool(value) => Some(Value::Bool(!value)),
        Value::Integer(number) => {
            let fits = |number: &i64| {
                #[expect(clippy::cast_precision_loss, reason = "a sample is small")]
                let number = *number as f64;
                constraint.min.is_none_or(|min| number >= min)
                    && constraint.max.is_none_or(|max| number <= max)
            };
            let others = [number.checked_add(1), number.checked_sub(1)];
            others.into_iter().flatten().find(fits).map(Value::Integer)
        }
        Value::String(text) => {
            if let Some(one_of) = &constraint.one_of {
                let other = one_of.values.iter().find(|other| ***other != **text)?;
                return Some(Value::string(&**other));
            }
            let other = format!("{text}2");
            let fits = constraint.length_max.is_none_or(|max| other.chars().count() <= max);
            fits.then(|| Value::string(&*other))
        }
        _ => None,
    }
}

/// Returns a given value with references to made objects, such as `${zone.id}`, filled in.
fn resolved(value: &Value, made: &Made) -> Result<Value, String> {
    Ok(match value {
        Value::String(text) => {
            let inner = text.strip_prefix("${").and_then(|text| text.strip_suffix('}'));
            match inner.and_then(|inner| inner.split_once('.')) {
                Some((ty, attribute)) => of_made(made, ty, attribute)?,
                None => value.clone(),
            }
        }
        Value::List(items) => {
            let items = items.iter().map(|item| resolved(item, made));
            Value::list(items.collect::<Result<_, _>>()?)
        }
        Value::Map(entries) => {
            let entries =
                entries.iter().map(|(name, item)| Ok((name.clone(), resolved(item, made)?)));
            Value::map(entries.collect::<Result<_, String>>()?)
        }
        other => other.clone(),
    })
}

/// Returns an attribute of a made object.
fn of_made(made: &Made, ty: &str, attribute: &str) -> Result<Value, String> {
    let object = made.get(ty).ok_or_else(|| format!("there is no {ty} to refer to"))?;
    match object.attributes.get(attribute) {
        Some(value) => Ok(value.clone()),
        None if attribute == "id" => Ok(Value::string(&*object.id.0)),
        None => Err(format!("the {ty} that was made shows no `{attribute}`")),
    }
}

#[cfg(test)]
mod tests {
    use engine::expression::parse::{Dialect, template};
    use engine::schema::OneOf;

    use super::*;

    fn constraint(text: &str) -> Constraint {
        let mut constraint = Constraint::default();
        for part in text.split_whitespace() {
            let (key, bound) = part.split_once('=').unwrap();
            match key {
                "min" => constraint.min = bound.parse().ok(),
                "max" => constraint.max = bound.parse().ok(),
                "length_min" => constraint.length_min = bound.parse().ok(),
                "length_max" => constraint.length_max = bound.parse().ok(),
                _ => {
                    let values = bound.split(',').map(Name::from).collect();
                    constraint.one_of = Some(OneOf { values, separator: None, exclusion: None });
                }
            }
        }
        constraint
    }

    #[test]
    fn values_fit_their_bounds() {
        for (ty, bounds, expected) in [
            ("string", "", "\"plumb\""),
            ("string", "length_max=3", "\"plu\""),
            ("string", "length_min=7", "\"plumbxx\""),
            ("string", "one_of=a,b", "\"a\""),
            ("integer", "", "1"),
            ("integer", "min=10", "10"),
            ("boolean", "", "false"),
            ("list(string)", "", "[]"),
            ("list(string)", "length_min=1 one_of=x", "[\"x\"]"),
            ("object{a = integer, b? = string}", "", "{\"a\": 1}"),
        ] {
            let ty: Type = ty.parse().unwrap();
            let found = value(&ty, &constraint(bounds), "plumb").unwrap();
            assert_eq!(format!("{found:?}"), expected, "{ty} {bounds}");
        }
        assert!(value(&Type::Any, &Constraint::default(), "plumb").is_none());
    }

    fn sample(attributes: BTreeMap<Name, Attribute>, name_attribute: Option<&str>) -> Sample {
        let schema = TypeSchema {
            name: "thing".into(),
            description: String::new(),
            attributes,
            create: Vec::new(),
            update: Vec::new(),
            delete: Vec::new(),
            identity: engine::schema::Identity::Ask,
            replace: engine::schema::ReplaceOrder::DeleteFirst,
            unique_name: false,
            name_attribute: name_attribute.map(Name::from),
            delete_effect: None,
            price: None,
            rules: Vec::new(),
            remote: true,
            data_only: false,
            singleton: None,
        };
        Sample {
            schema: schema.into(),
            given: Attributes::new(),
            changed: Attributes::new(),
            repeated: BTreeMap::new(),
            mark: "x".to_owned(),
        }
    }

    /// Two members of one project differ by their address, not by the project, nor by a role of a list.
    #[test]
    fn a_second_object_has_another_name() {
        let attribute = |change: &dyn Fn(&mut Attribute)| {
            let mut attribute = Attribute::new(Type::String);
            change(&mut attribute);
            attribute
        };
        let form = template("${project}|${email}|${role}", Dialect::Names).unwrap();
        let required = |own: &mut Attribute| own.presence = Presence::Required;
        let attributes: BTreeMap<Name, Attribute> = BTreeMap::from([
            ("email".into(), attribute(&required)),
            ("project".into(), attribute(&required)),
            ("role".into(), {
                let mut role = attribute(&required);
                role.constraint = constraint("one_of=viewer,owner");
                role
            }),
            ("full".into(), {
                attribute(&|own: &mut Attribute| {
                    own.presence = Presence::Computed;
                    own.derived = Some(form.clone());
                })
            }),
        ]);
        let given = ["email", "project", "role"].map(|name| (name.into(), Value::string("viewer")));
        let given = Attributes::from(given);
        for (name, expected) in [
            ("full", r#"{"email": "viewer2", "project": "viewer", "role": "viewer"}"#),
            ("role", r#"{"email": "viewer", "project": "viewer", "role": "owner"}"#),
        ] {
            let sample = Sample { given: given.clone(), ..sample(attributes.clone(), Some(name)) };
            let another = sample.another(&Made::new(), &given).unwrap();
            assert_eq!(format!("{another:?}"), expected, "{name}");
        }
    }

    #[test]
    fn items_of_a_list_are_in_no_order() {
        let items = |ty: &str, bounds: &str, given: Option<Value>| {
            let mut attribute = Attribute::new(ty.parse().unwrap());
            attribute.constraint = constraint(bounds);
            let given = given.map(|value| ("list".into(), value)).into_iter().collect();
            let attributes = BTreeMap::from([("list".into(), attribute)]);
            let sample = Sample { given, ..sample(attributes, None) };
            sample.items("list").map(|items| format!("{items:?}"))
        };
        let some = |text: &str| Some(text.to_owned());
        let given =
            |texts: &[&str]| Some(Value::list(texts.iter().map(|it| Value::string(*it)).collect()));
        assert_eq!(items("list(string)", "", None), some(r#"["x-c", "x-a", "x-b"]"#));
        assert_eq!(items("list(integer)", "", None), some("[3, 1, 2]"));
        assert_eq!(items("list(string)", "one_of=a,b,c,d", None), some(r#"["c", "a", "b"]"#));
        assert_eq!(items("list(string)", "one_of=a,b", None), None);
        assert_eq!(items("list(boolean)", "", None), None);
        assert_eq!(items("list(string)", "", given(&["p", "q", "r"])), some(r#"["p", "r", "q"]"#));
        assert_eq!(items("list(string)", "", given(&["p", "q"])), some(r#"["q", "p"]"#));
        assert_eq!(items("set(string)", "", None), None);
    }

    #[test]
    fn other_values_fit_their_bounds() {
        let other = |value: Value, bounds: &str| {
            let mut attribute = Attribute::new(Type::Any);
            attribute.constraint = constraint(bounds);
            other_value(&value, &attribute)
        };
        assert_eq!(other(Value::Integer(3), "max=3"), Some(Value::Integer(2)));
        assert_eq!(other(Value::Integer(3), "min=3 max=3"), None);
        assert_eq!(other(Value::string("a"), "one_of=a,b"), Some(Value::string("b")));
        assert_eq!(other(Value::string("a"), "one_of=a"), None);
        assert_eq!(other(Value::string("ab"), "length_max=2"), None);
        assert_eq!(other(Value::Bool(true), ""), Some(Value::Bool(false)));
    }
}
