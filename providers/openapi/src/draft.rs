//! One type of a descriptor, made from its calls.

use std::collections::{BTreeMap, BTreeSet};

use crate::attribute::{
    self, AttributeDraft, Parameter, Presence, Sources, Surroundings, attribute,
};
use crate::calls::{self, Named, Texts};
use crate::candidate::{CallDraft, Candidate, braced};
use crate::key;
use crate::names::{attribute_name, made, one_line, singular, snake};
use crate::object::{self, Found, Objects};
use crate::operation::{Body, Method, Operation, parameter_schema};
use crate::shape::{Kind, Shapes};
use crate::types::Naming;

/// A type without its name.
pub(crate) struct TypeDraft {
    /// The words of its path, the last first.
    pub(crate) nouns: Vec<String>,
    /// The path of one object, as the document writes it.
    pub(crate) path: String,
    pub(crate) depth: usize,
    pub(crate) description: Option<String>,
    pub(crate) parent: Option<ParentDraft>,
    /// The attribute for each parameter of the item path.
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) key: String,
    pub(crate) texts: Texts,
    pub(crate) attributes: Vec<AttributeDraft>,
    /// The attributes that were left out, with the reasons.
    pub(crate) left_out: Vec<(String, &'static str)>,
}

/// The parent of a type: the type below whose objects the type's objects are.
pub(crate) struct ParentDraft {
    /// The index of the parent among the drafts.
    pub(crate) index: usize,
    /// The attributes of a child, each with the attribute of its parent that it repeats.
    pub(crate) attributes: Vec<(String, String)>,
}

/// Returns the type of a candidate, or the reason that there is none.
pub(crate) fn draft<'a>(
    shapes: &Shapes<'a>,
    naming: Naming,
    candidate: &Candidate<'a>,
    parent: Option<(usize, &TypeDraft)>,
) -> Result<TypeDraft, String> {
    let nouns = candidate.item.nouns();
    let noun = nouns.first().map_or_else(|| "object".to_owned(), |noun| singular(noun));
    let objects = objects(shapes, candidate, &nouns)?;
    let mut builder = Builder::new(shapes, naming, &noun, &objects);
    builder.is_managed = candidate.management.is_some();
    let above = parent.map(|(index, parent)| builder.repeated(candidate, index, parent));
    let own = builder.own_parameters(candidate)?;
    builder.others();
    let mut parameters = above.iter().flat_map(|(_, above)| above.clone()).collect::<Vec<_>>();
    parameters.extend(own.iter().cloned());
    let mut is_client = false;
    if let Some(management) = &candidate.management {
        let is_put = management.create.operation.method == Method::Put;
        is_client = is_put || own.iter().all(|parameter| builder.is_given(&parameter.name));
        if !is_client && objects.created.is_none() {
            return Err("the answer to its create does not tell the id".to_owned());
        }
        if is_put || is_client && parameters.len() > 1 {
            builder.require(&own);
        }
    }
    let key = builder.key(&parameters, &own);
    let named = Named { attributes: &builder.attributes, parameters: &parameters, is_client };
    let texts = calls::texts(shapes, candidate, &objects, &named)?;
    Ok(TypeDraft {
        nouns,
        path: braced(&candidate.item),
        depth: candidate.item.depth(),
        description: description(candidate),
        parent: above.map(|(parent, _)| parent),
        parameters,
        key,
        texts,
        attributes: builder.sorted(),
        left_out: builder.left_out,
    })
}

/// Returns the description of an object.
fn description(candidate: &Candidate<'_>) -> Option<String> {
    let create = candidate.management.as_ref().map(|calls| &calls.create);
    let call = create.or(candidate.read.as_ref()).unwrap_or(&candidate.list);
    let words = call.operation.summary().map(|words| made(&one_line(words)));
    words.filter(|words| !words.is_empty())
}

/// Returns the objects in the bodies and answers of the calls.
fn objects<'a>(
    shapes: &Shapes<'a>,
    candidate: &Candidate<'a>,
    nouns: &[String],
) -> Result<Objects<'a>, String> {
    let taken = |call: &CallDraft<'a>| body(shapes, call.operation, nouns);
    let shown = |call: &CallDraft<'a>| {
        let answer = shapes.of(call.operation.answer()?);
        object::object(shapes, answer, nouns).filter(|found| !found.properties.is_empty())
    };
    let management = candidate.management.as_ref();
    let create = management.map(|calls| taken(&calls.create)).transpose();
    let create = create.map_err(|other| format!("its create takes {other}"))?.unwrap_or_default();
    let update = management.and_then(|calls| calls.update.as_ref());
    let updated = update.and_then(shown);
    let update = update.and_then(|call| taken(call).ok());
    let update = update.filter(|found| !found.properties.is_empty());
    let read = candidate.read.as_ref().and_then(shown);
    let created = management.and_then(|calls| shown(&calls.create));
    let list = candidate.list.operation.answer().map(|schema| shapes.of(schema));
    let mut listed = object::listed(shapes, &list.unwrap_or_default(), nouns)?;
    if listed.properties.is_empty() {
        let known = read.as_ref().or(created.as_ref());
        listed.properties = known.map(|found| found.properties.clone()).unwrap_or_default();
    }
    if listed.properties.is_empty() {
        return Err("no schema tells what its list shows".to_owned());
    }
    Ok(Objects { create, update, listed, read, created, updated })
}

/// Returns the object in the body of a call. The error describes what the body has instead.
fn body<'a>(
    shapes: &Shapes<'a>,
    operation: Operation<'a>,
    nouns: &[String],
) -> Result<Found<'a>, String> {
    match operation.body() {
        Body::None => Ok(Found::default()),
        Body::Other(content_type) => Err(format!("{content_type}, and no JSON")),
        Body::Json { schema, .. } | Body::Form { schema } => {
            let shape = shapes.of(schema);
            if shape.kind() == Kind::Any {
                return Ok(Found::default());
            }
            object::object(shapes, shape, nouns).ok_or_else(|| "no object".to_owned())
        }
    }
}

/// The attributes of a type while they are collected.
struct Builder<'s, 'a> {
    shapes: &'s Shapes<'a>,
    naming: Naming,
    noun: &'s str,
    objects: &'s Objects<'a>,
    /// True if specs make objects of the type.
    is_managed: bool,
    attributes: BTreeMap<String, AttributeDraft>,
    /// The order of the attributes for parameters.
    order: Vec<String>,
    /// The wire names that already have an attribute.
    wires: BTreeSet<&'a str>,
    left_out: Vec<(String, &'static str)>,
}

impl<'s, 'a> Builder<'s, 'a> {
    fn new(
        shapes: &'s Shapes<'a>,
        naming: Naming,
        noun: &'s str,
        objects: &'s Objects<'a>,
    ) -> Self {
        Self {
            shapes,
            naming,
            noun,
            objects,
            is_managed: true,
            attributes: BTreeMap::new(),
            order: Vec::new(),
            wires: BTreeSet::new(),
            left_out: Vec::new(),
        }
    }

    fn surroundings(&self, is_key: bool) -> Surroundings<'s, 'a> {
        Surroundings {
            shapes: self.shapes,
            naming: self.naming,
            has_update: self.objects.update.is_some(),
            is_key,
        }
    }

    fn sources(&self, wire: &str) -> Sources<'s, 'a> {
        let objects = self.objects;
        let of = |found: Option<&'s Found<'a>>| found.and_then(|found| found.properties.get(wire));
        let created = of(objects.created.as_ref());
        Sources {
            create: of(Some(&objects.create)),
            update: of(objects.update.as_ref()),
            listed: of(Some(&objects.listed)),
            read: of(objects.read.as_ref()).or(created.filter(|_| objects.read.is_none())),
        }
    }

    /// Adds the attributes that repeat the parent's.
    fn repeated(
        &mut self,
        candidate: &Candidate<'a>,
        index: usize,
        parent: &TypeDraft,
    ) -> (ParentDraft, Vec<Parameter>) {
        let names = candidate.item.parameters();
        let parent_noun = parent.nouns.first().map_or("parent", String::as_str);
        let parent_noun = singular(parent_noun);
        let (mut pairs, mut own) = (Vec::new(), Vec::new());
        for (wire, theirs) in names.into_iter().zip(&parent.parameters) {
            let is_taken = |name: &str| {
                self.attributes.contains_key(name) || is_general(name) || self.is_own_name(name)
            };
            let name = snake(wire).filter(|name| !is_taken(name));
            let name = name.unwrap_or_else(|| format!("{parent_noun}_{}", theirs.name));
            let mut attribute = AttributeDraft {
                name: name.clone(),
                ty: theirs.ty.clone(),
                presence: Presence::Computed,
                replaces: true,
                keys: Vec::new(),
                proofs: Vec::new(),
            };
            if self.is_managed {
                attribute.presence = Presence::Required;
                attribute.add("on_change", "\"replace\"");
            }
            // A property `id` of the body is the child's, whatever the path of its parent calls a parameter.
            let mut taken = self.objects.create.properties.keys();
            if let Some(wire) = taken.find(|wire| snake(wire).as_deref() == Some(&*name)) {
                self.wires.insert(wire);
                if self.naming.wire(&name) != *wire {
                    attribute.add("wire", &attribute::quoted(wire));
                }
            } else {
                attribute.add("wire", "false");
                self.wires.extend(self.shown_as(&name));
            }
            self.order.push(name.clone());
            self.attributes.insert(name.clone(), attribute);
            pairs.push((name.clone(), theirs.name.clone()));
            own.push(Parameter { name, ty: theirs.ty.clone() });
        }
        (ParentDraft { index, attributes: pairs }, own)
    }

    /// Returns true if the type has an attribute with this name that is no scalar, and so does not repeat a
    /// parent's attribute.
    fn is_own_name(&self, name: &str) -> bool {
        let all = self.objects.create.properties.iter();
        all.filter(|(wire, _)| snake(wire).as_deref() == Some(name)).any(|(_, property)| {
            let kind = self.shapes.of_property(property).kind();
            !matches!(kind, Kind::Text | Kind::Integer)
        })
    }

    /// Returns the wire names in answers for a name.
    fn shown_as(&self, name: &str) -> Vec<&'a str> {
        let objects = self.objects;
        let found = [Some(&objects.listed), objects.read.as_ref(), objects.created.as_ref()];
        let names = found.into_iter().flatten().flat_map(|found| found.properties.keys().copied());
        names.filter(|wire| snake(wire).as_deref() == Some(name)).collect()
    }

    /// Adds the attributes that name an object below its parent.
    fn own_parameters(&mut self, candidate: &Candidate<'a>) -> Result<Vec<Parameter>, String> {
        let names = candidate.item.parameters();
        let own = names.iter().skip(names.len() - candidate.own);
        let calls = candidate.management.as_ref().map(|calls| &calls.delete);
        let kinds = calls.or(candidate.read.as_ref()).unwrap_or(&candidate.list).operation;
        own.map(|parameter| {
            let declared =
                kinds.parameters_in("path").into_iter().find(|(name, _)| name == parameter);
            let schema = declared.map(|(_, declared)| parameter_schema(declared));
            let kind = schema.map_or(Kind::Text, |schema| self.shapes.of(schema).kind());
            self.own_parameter(parameter, kind)
        })
        .collect()
    }

    fn own_parameter(&mut self, parameter: &str, kind: Kind) -> Result<Parameter, String> {
        let shown = &self.objects.listed.properties;
        let none = || format!("its list shows nothing that `{{{parameter}}}` may stand for");
        let place =
            key::place(self.shapes, (parameter, kind), self.noun, shown).ok_or_else(none)?;
        let mut sources = self.sources(place.name);
        let inner;
        if let Some(below) = place.below {
            inner = shown.get(place.name).map(|it| self.shapes.of_property(it)).unwrap_or_default();
            sources = Sources { listed: inner.properties.get(below), ..Sources::default() };
        }
        let wire = place.wire();
        let base = if place.below.is_some() { parameter } else { place.name };
        let name = attribute_name(base, self.noun).ok_or_else(none)?;
        if self.attributes.contains_key(&name) {
            return Err(format!("its path names `{name}` twice"));
        }
        let mut draft = attribute(name.clone(), &wire, sources, self.surroundings(true))?;
        if draft.ty != "integer" {
            let is_known = draft.ty == "string";
            "string".clone_into(&mut draft.ty);
            if !is_known {
                draft.proofs.push("the document does not tell its type");
            }
        }
        draft.keys.retain(|(key, _)| *key != "volatile");
        self.wires.insert(place.name);
        self.order.push(name.clone());
        let found = Parameter { name: name.clone(), ty: draft.ty.clone() };
        self.attributes.insert(name, draft);
        Ok(found)
    }

    /// Adds all other attributes.
    fn others(&mut self) {
        let objects = self.objects;
        let found = [
            Some(&objects.create),
            objects.update.as_ref(),
            Some(&objects.listed),
            objects.read.as_ref(),
            objects.created.as_ref().filter(|_| objects.read.is_none()),
        ];
        let names: BTreeSet<&'a str> = found
            .into_iter()
            .flatten()
            .flat_map(|found| found.properties.keys().copied())
            .filter(|wire| !self.wires.contains(wire))
            .collect();
        for wire in names {
            if let Err(reason) = self.other(wire) {
                self.left_out.push((wire.to_owned(), reason));
            }
        }
    }

    fn other(&mut self, wire: &'a str) -> Result<(), &'static str> {
        let name =
            attribute_name(wire, self.noun).ok_or("its name cannot be one of an attribute")?;
        if wire.contains('.') {
            return Err("its name has a dot, which parts a path on the wire");
        }
        if self.attributes.contains_key(&name) {
            return Err("another attribute has this name");
        }
        let draft = attribute(name.clone(), wire, self.sources(wire), self.surroundings(false))?;
        self.attributes.insert(name, draft);
        Ok(())
    }

    fn is_given(&self, name: &str) -> bool {
        self.attributes.get(name).is_some_and(|it| it.presence != Presence::Computed)
    }

    /// Makes the parts of a key that a client chooses required. A part that no body contains appears only in
    /// the path.
    fn require(&mut self, own: &[Parameter]) {
        for parameter in own {
            let Some(attribute) = self.attributes.get_mut(&parameter.name) else { continue };
            if attribute.presence == Presence::Computed {
                let wire = attribute.keys.iter().position(|(key, _)| *key == "wire");
                let wire = wire.map(|at| attribute.keys.remove(at).1);
                let name = wire.map_or(String::new(), |wire| format!("name = {wire}, "));
                attribute.keys.insert(0, ("on_change", "\"replace\"".to_owned()));
                attribute.add("wire", &format!("{{ rest = {{ {name}write = false }} }}"));
                attribute.replaces = true;
            }
            attribute.require();
        }
    }

    /// Returns the attribute that holds the id. If the id is made of several attributes, adds an attribute
    /// for it.
    fn key(&mut self, parameters: &[Parameter], own: &[Parameter]) -> String {
        if let ([only], 1) = (own, parameters.len()) {
            return only.name.clone();
        }
        let names = ["full_id", "full_key", "path_id"];
        let name = names.iter().find(|name| !self.attributes.contains_key(**name));
        let name = name.map_or("plumb_id", |name| *name).to_owned();
        let parts: Vec<String> =
            parameters.iter().map(|parameter| format!("${{{}}}", parameter.name)).collect();
        let draft = AttributeDraft {
            name: name.clone(),
            ty: "string".to_owned(),
            presence: Presence::Computed,
            replaces: false,
            keys: vec![("derived", attribute::quoted(&parts.join("|")))],
            proofs: Vec::new(),
        };
        self.order.insert(0, name.clone());
        self.attributes.insert(name.clone(), draft);
        name
    }

    /// Returns the attributes in the order in which people read them: the key, the required ones, the
    /// optional ones, and those that the API computes.
    fn sorted(&self) -> Vec<AttributeDraft> {
        let place = |draft: &AttributeDraft| {
            let of_path = self.order.iter().position(|name| *name == draft.name);
            (of_path.unwrap_or(usize::MAX), draft.presence, draft.name.clone())
        };
        let mut sorted: Vec<AttributeDraft> = self.attributes.values().cloned().collect();
        sorted.sort_by_key(place);
        sorted
    }
}

/// Returns true if the name of a parameter says nothing about its object.
fn is_general(name: &str) -> bool {
    matches!(name, "id" | "name" | "key" | "uuid" | "slug" | "type")
}
