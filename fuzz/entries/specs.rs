//! The entries for specs and descriptors: from TOML to diagnostics, or up to a plan.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use engine::address::Name;
use engine::config::resolve::{ResolveInput, resolve_owned};
use engine::config::{parse, settings};
use engine::diagnostics::{Diagnostic, Diagnostics, FileId, Severity, Sources};
use engine::digest::SealKey;
use engine::graph::Graph;
use engine::plan::file;
use engine::plan::input::{Observations, Options, PlanInput};
use engine::schema::ProviderSchema;
use engine::state::Snapshot;
use provider_http::{HttpProvider, Settings};
use provider_openapi::{Fault, convert, marks};
use provider_port::Provider as _;
use render::Colour;
use render::view::PlanView;

use super::harmless;

/// The providers that a spec may use: `value`, and the types of the service.
static PROVIDERS: LazyLock<BTreeMap<Name, Arc<ProviderSchema>>> = LazyLock::new(|| {
    let nothing = |_: &str| None;
    let serverless = provider_serverless::provider(&Settings::new(&nothing));
    let serverless = serverless.expect("the descriptor is sound").schema();
    let builtin = provider_builtin::Builtin::new().schema();
    BTreeMap::from([("builtin".into(), builtin), ("serverless".into(), serverless)])
});

/// Parses, resolves and orders a spec. A spec without mistakes is planned, and the plan is rendered, saved
/// and read.
pub(crate) fn spec(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let mut sources = Sources::default();
    let file = sources.add("plumb.toml", text);
    let (document, mut found) = parse::parse(&sources, &[file]);
    let content = |path: &String| (path.clone(), Ok(Arc::from("content")));
    let input = ResolveInput {
        variables: BTreeMap::new(),
        places: BTreeMap::new(),
        providers: PROVIDERS.clone(),
        files: document.files.iter().map(content).collect(),
    };
    found.extend(
        settings::provider_settings(&document, (&input.variables, &input.places), &input.files).1,
    );
    found.extend(settings::state_settings(&document).1);
    let (config, more) = resolve_owned(document, &input);
    found.extend(more);
    let (graph, more) = Graph::new(&config);
    found.extend(more);
    show(&found, &sources);
    if found.has_errors() {
        return;
    }
    let snapshot = Snapshot::new("lineage".to_owned(), SealKey::from_random([7; 32]));
    let (plan, found) = engine::plan::plan(&PlanInput {
        moves: &engine::plan::Moves::default(),
        config: &config,
        graph: &graph,
        providers: &PROVIDERS,
        accounts: &BTreeMap::new(),
        snapshot: &snapshot,
        observations: &Observations::default(),
        options: &Options::default(),
    });
    show(&found, &sources);
    let view = PlanView::new(&plan, &sources, &found, None);
    let options = render::terminal::Options { colour: Colour::Off, steps: true };
    harmless(&render::terminal::plan(&view, options));
    harmless(&render::markdown::plan(&view));
    harmless(&render::json::pretty(&view));
    if found.has_errors() {
        return;
    }
    let (inputs, view) = (file::Inputs::default(), serde_json::Value::Null);
    let file = file::write(&file::SavedPlan { inputs, plan: plan.clone(), view });
    let back = file::read(&file).expect("what was written can be read");
    assert_eq!(file::digest(&back.plan), file::digest(&plan));
}

/// Reads a descriptor, and configures it if it has no mistakes.
pub(crate) fn descriptor(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let mut sources = Sources::default();
    let file: FileId = sources.add("x.provider.toml", text);
    let (descriptor, found) = provider_http::load(text, file);
    show(&found, &sources);
    assert_eq!(descriptor.is_none(), found.has_errors());
    let Some(descriptor) = descriptor else { return };
    let environment = |name: &str| name.ends_with("URL").then(|| "http://127.0.0.1:1".to_owned());
    match HttpProvider::configure(descriptor, &Settings::new(&environment)) {
        Ok(provider) => drop(provider.schema()),
        Err(found) => show(&found, &sources),
    }
}

/// Converts a document of an API to a descriptor that loads, or refuses it with a message.
pub(crate) fn openapi(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let load = |text: &str| {
        let (_, found) = provider_http::load(text, FileId(0));
        let errors = found.iter().filter(|it| it.severity == Severity::Error);
        let fault = |found: &Diagnostic| Fault {
            place: found.span.map_or(0..0, |span| span.start as usize..span.end as usize),
            message: found.summary.clone(),
        };
        errors.map(fault).collect::<Vec<_>>()
    };
    match convert(text, &provider_openapi::Options::default(), &load) {
        Ok(converted) => {
            assert!(!converted.text.chars().any(|it| it.is_control() && it != '\n'));
            assert_eq!(load(&converted.text), []);
            let _count = marks(&converted.text).len();
        }
        Err(refusal) => harmless(&refusal.message),
    }
}

fn show(found: &Diagnostics, sources: &Sources) {
    harmless(&render::diagnostics::text(found, sources, Colour::Off));
}
