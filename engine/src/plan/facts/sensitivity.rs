//! The sensitive paths of an object that is not evaluated any more: one that goes, or that an earlier run
//! left.
//!
//! They are those of its schema, those that the state recorded, and the attributes that the spec taints. An
//! attribute is tainted if the text of the spec leads from it to a secret, through locals, `for_each` and
//! other objects. A tainted attribute counts as a whole. Taint hides too much rather than too little, so it
//! is used only for what a plan shows, not for what the state stores: an id stored as a secret would hide
//! from the next plan which objects the object refers to.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::address::{Block, Name};
use crate::config::{Config, ResourceConfig};
use crate::expression::visit::{roots, walk};
use crate::expression::{Expr, Kind, Root};
use crate::schema::TypeSchema;
use crate::value::{Path, Paths};

/// A part of the text of a spec that may be a secret, or be made of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Node<'a> {
    /// A sensitive variable, or a call of `sensitive`.
    Secret,
    Local(&'a Name),
    /// The `for_each` of a block.
    Each(&'a Block),
    Attribute(&'a Block, &'a Name),
    /// All attributes of the objects of a block.
    Object(&'a Block),
}

/// The attributes of a spec's resources that may be made of a secret.
pub(in crate::plan) struct Taint<'a>(FxHashSet<Node<'a>>);

impl<'a> Taint<'a> {
    /// Follows each secret of a spec to the attributes that are made of it.
    pub(in crate::plan) fn of(config: &'a Config) -> Self {
        let mut flows = Flows { config, uses: FxHashMap::default() };
        for (name, local) in &config.locals {
            flows.add(&local.value.expr, Node::Local(name), None);
        }
        config.resources.values().for_each(|resource| flows.add_resource(resource));
        let mut tainted = FxHashSet::default();
        let mut open = vec![Node::Secret];
        while let Some(node) = open.pop() {
            for user in flows.uses.remove(&node).into_iter().flatten() {
                if tainted.insert(user) {
                    open.push(user);
                }
            }
        }
        Self(tainted)
    }

    /// Returns the sensitive paths of an object that may still belong to the block: those of the schema,
    /// those recorded in the state, and the tainted attributes.
    pub(in crate::plan) fn paths(
        &self,
        block: &Block,
        schema: &TypeSchema,
        recorded: &Paths,
    ) -> Paths {
        let mut paths = schema.sensitive();
        paths.extend_below(&Path::root(), recorded);
        for name in schema.attributes.keys() {
            if self.0.contains(&Node::Attribute(block, name)) {
                paths.insert(Path::attribute(name.clone()));
            }
        }
        add_derived(schema, &mut paths);
        paths
    }
}

/// Adds the attributes that are derived from a sensitive one.
fn add_derived(schema: &TypeSchema, paths: &mut Paths) {
    let derived =
        schema.attributes.iter().filter_map(|(name, it)| Some((name, it.derived.as_ref()?)));
    let derived: Vec<(&Name, &Expr)> = derived.collect();
    // A derived attribute may be derived from another one.
    for _ in &derived {
        for (name, expr) in &derived {
            let mut is_sensitive = false;
            roots(expr, &mut |root, _| {
                let Root::Named(other) = root else { return };
                is_sensitive |= paths.touches(&Path::attribute(other.clone()));
            });
            if is_sensitive {
                paths.insert(Path::attribute(Name::clone(name)));
            }
        }
    }
}

/// The flows of values in the text of a spec.
struct Flows<'a> {
    config: &'a Config,
    /// The nodes that are made of each node.
    uses: FxHashMap<Node<'a>, Vec<Node<'a>>>,
}

impl<'a> Flows<'a> {
    fn add_resource(&mut self, resource: &'a ResourceConfig) {
        let block = &resource.block;
        if let Some(for_each) = &resource.for_each {
            self.add(&for_each.expr, Node::Each(block), None);
        }
        let sensitive = resource.schema.sensitive();
        for (name, attribute) in &resource.schema.attributes {
            let node = Node::Attribute(block, name);
            self.flow(node, Node::Object(block));
            if sensitive.touches(&Path::attribute(name.clone())) {
                self.flow(Node::Secret, node);
            }
            if let Some(given) = resource.attributes.get(name) {
                self.add(&given.value.expr, node, Some(block));
            }
            if let Some(derived) = &attribute.derived {
                roots(derived, &mut |root, _| {
                    if let Root::Named(other) = root {
                        self.flow(Node::Attribute(block, other), node);
                    }
                });
            }
        }
    }

    fn flow(&mut self, from: Node<'a>, to: Node<'a>) {
        self.uses.entry(from).or_default().push(to);
    }

    /// Adds the flows into a node from its expression, which stands in a block; none if it stands in no
    /// block.
    fn add(&mut self, expr: &'a Expr, to: Node<'a>, block: Option<&'a Block>) {
        // The walk meets an attribute of an object before the object.
        let mut taken: Option<&Expr> = None;
        walk(expr, &mut |part| match &part.kind {
            Kind::Call(call) if &*call.name == "sensitive" => self.flow(Node::Secret, to),
            Kind::Root(Root::Var(name)) => {
                let variable = self.config.variables.get(name);
                if variable.is_some_and(|variable| !variable.value.sensitive.is_empty()) {
                    self.flow(Node::Secret, to);
                }
            }
            Kind::Root(Root::Local(name)) => self.flow(Node::Local(name), to),
            Kind::Root(Root::EachValue) => {
                if let Some(block) = block {
                    self.flow(Node::Each(block), to);
                }
            }
            Kind::Attribute(object, name) => {
                if let Some((root, block)) = self.object(object) {
                    taken = Some(root);
                    self.flow(Node::Attribute(block, name), to);
                }
            }
            Kind::Root(Root::Resource(other))
                if !taken.take().is_some_and(|root| std::ptr::eq(root, part)) =>
            {
                self.flow(Node::Object(other), to);
            }
            _ => {}
        });
    }

    /// Returns the block whose object an expression is, and the place of the reference; none for other
    /// expressions.
    fn object(&self, expr: &'a Expr) -> Option<(&'a Expr, &'a Block)> {
        let (root, is_instance) = match &expr.kind {
            Kind::Index(root, _) => (&**root, true),
            _ => (expr, false),
        };
        let Kind::Root(Root::Resource(block)) = &root.kind else { return None };
        let resource = self.config.resources.get(block)?;
        (resource.for_each.is_some() == is_instance).then_some((root, block))
    }
}
