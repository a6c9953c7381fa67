//! Small documents, and the descriptors that they are converted to. Each descriptor loads.

use engine::diagnostics::{FileId, Severity};
use provider_openapi::{Converted, Fault, Options, Refusal, convert};

const ZONES: &str = include_str!("documents/zones.yaml");
const SERVERS: &str = include_str!("documents/servers.json");

fn faults(text: &str) -> Vec<Fault> {
    let (_, found) = provider_http::load(text, FileId(0));
    let errors = found.iter().filter(|diagnostic| diagnostic.severity == Severity::Error);
    let fault = |diagnostic: &engine::diagnostics::Diagnostic| Fault {
        place: diagnostic.span.map_or(0..0, |span| span.start as usize..span.end as usize),
        message: diagnostic.summary.clone(),
    };
    errors.map(fault).collect()
}

fn converted(document: &str, types: &[&str]) -> Result<Converted, Refusal> {
    let types = types.iter().map(|ty| (*ty).to_owned()).collect();
    convert(document, &Options { types, provider: None }, &faults)
}

fn left_out(converted: &Converted) -> Vec<String> {
    converted.left_out.iter().map(|left| format!("{}: {}", left.part, left.reason)).collect()
}

#[test]
fn parents_pages_and_keys_of_openapi_3() {
    let found = converted(ZONES, &[]).unwrap();
    assert_eq!(faults(&found.text), []);
    insta::assert_snapshot!("zones", found.text);
    insta::assert_debug_snapshot!("zones_left_out", left_out(&found));
}

#[test]
fn camel_case_and_envelopes_of_swagger_2() {
    let found = converted(SERVERS, &[]).unwrap();
    assert_eq!(faults(&found.text), []);
    insta::assert_snapshot!("servers", found.text);
    insta::assert_debug_snapshot!("servers_left_out", left_out(&found));
}

/// The ids of a create's body, a child's `id` below a path with another `{id}`, pages from 0, and a text that
/// no answer shows.
#[test]
fn ids_that_a_body_gives() {
    let found = converted(include_str!("documents/shelves.yaml"), &[]).unwrap();
    assert_eq!(faults(&found.text), []);
    insta::assert_snapshot!("shelves", found.text);
}

#[test]
fn a_type_comes_with_those_above_it() {
    let found = converted(ZONES, &["record"]).unwrap();
    let names: Vec<&str> = found.types.iter().map(|ty| ty.name.as_str()).collect();
    assert_eq!(names, ["zone", "record"]);
    let refused = converted(ZONES, &["recrod"]).unwrap_err();
    assert_eq!(refused.message, "the document has no type `recrod`: did you mean `record`?");
}

#[test]
fn a_type_that_would_not_load_is_left_out_with_those_below_it() {
    let about_zones = |text: &str| {
        let at = text.find("[type.zone]").map(|at| at..at + 11);
        let fault = |place| Fault { place, message: "no".to_owned() };
        at.map(fault).into_iter().collect::<Vec<_>>()
    };
    let found = convert(ZONES, &Options::default(), &about_zones).unwrap();
    let names: Vec<&str> = found.types.iter().map(|ty| ty.name.as_str()).collect();
    assert_eq!(names, ["customer", "owner", "hook"]);
    let left_out = left_out(&found).join("\n");
    assert!(left_out.contains("/zones/{zone_id}: its descriptor would not load: no"), "{left_out}");
    assert!(left_out.contains("/zones/{zone_id}/records/{name}: its descriptor"), "{left_out}");
    let of_head = |_: &str| vec![Fault { place: 0..0, message: "no".to_owned() }];
    let refused = convert(ZONES, &Options::default(), &of_head).unwrap_err();
    assert_eq!(refused.message, "no type of the document can be managed");
}

/// A truncated or damaged document is refused or converted, and a converted one loads.
#[test]
fn damaged_documents_are_refused_in_words() {
    for document in [ZONES, SERVERS] {
        for cut in (0..document.len()).step_by(37).filter(|at| document.is_char_boundary(*at)) {
            if let Ok(found) = converted(&document[..cut], &[]) {
                assert_eq!(faults(&found.text), [], "cut at {cut}");
            }
        }
        for word in
            ["object", "string", "schema", "properties", "items", "array", "name", "get", "id"]
        {
            for odd in ["null", "x", "1", "$ref", "", "\\u0007"] {
                if let Ok(found) = converted(&document.replace(word, odd), &[]) {
                    assert_eq!(faults(&found.text), [], "{word} as {odd}");
                }
            }
        }
    }
}

/// Returns a document whose schemas refer to each other many times, in a circle.
fn multiplying(schemas: usize) -> String {
    let mut all = String::new();
    for level in 0..schemas {
        let next = (level + 1) % schemas;
        let below = format!("{{\"$ref\": \"#/components/schemas/s{next}\"}}");
        all.extend([format!(
            "\"s{level}\": {{\"allOf\": [{below}, {below}], \"properties\": {{\"id\": {{\"type\": \"string\"}}, \
             \"p{level}\": {{\"anyOf\": [{below}, {below}, {{\"items\": {below}}}]}}}}}},"
        )]);
    }
    let schema = "{\"$ref\": \"#/components/schemas/s0\"}";
    let content = |schema: &str| {
        format!("{{\"content\": {{\"application/json\": {{\"schema\": {schema}}}}}}}")
    };
    let list = content(&format!("{{\"type\": \"array\", \"items\": {schema}}}"));
    let one = content(schema);
    format!(
        "{{\"openapi\": \"3.1.0\", \"paths\": {{\"/a\": {{\"get\": {{\"responses\": {{\"200\": {list}}}}}, \"post\": \
         {{\"requestBody\": {one}, \"responses\": {{\"200\": {one}}}}}}}, \"/a/{{id}}\": {{\"delete\": {{}}}}}}, \
         \"components\": {{\"schemas\": {{{all} \"end\": {{}}}}}}}}"
    )
}

#[test]
fn schemas_that_multiply_end() {
    for schemas in [6, 60] {
        let found = converted(&multiplying(schemas), &[]).unwrap();
        assert_eq!(faults(&found.text), []);
    }
}
