//! The description of an API as an `OpenAPI` document.

use serde_json::{Map, Value, json};

use super::operation::{Answer, Operation, Parameter};
use super::shape::Shape;

/// The description of a whole API.
pub(crate) struct ApiInfo {
    pub(crate) title: &'static str,
    pub(crate) version: &'static str,
    pub(crate) summary: &'static str,
    /// The prefix of every path.
    pub(crate) prefix: &'static str,
    /// The statuses of problems, and the meaning of each.
    pub(crate) problems: &'static [(u16, &'static str)],
    pub(crate) problem: fn() -> Shape,
    pub(crate) problem_media: &'static str,
}

/// Returns the document. `server` is the address of the service.
pub(crate) fn document(about: &ApiInfo, operations: &[Operation], server: &str) -> Value {
    let mut components = Map::new();
    let mut paths: Map<String, Value> = Map::new();
    for operation in operations {
        let path = paths.entry(operation.shown_path()).or_insert_with(|| json!({}));
        let method = operation.form.method.as_str().to_ascii_lowercase();
        path[method] = described(about, operation, &mut components);
    }
    let mut groups: Vec<Value> = Vec::new();
    for operation in operations {
        let group = json!({ "name": operation.group });
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": about.title,
            "version": about.version,
            "description": about.summary,
        },
        "servers": [{ "url": format!("{server}{}", about.prefix) }],
        "security": [{ "key": [] }],
        "tags": groups,
        "paths": paths,
        "components": {
            "securitySchemes": { "key": { "type": "http", "scheme": "bearer" } },
            "schemas": components,
        },
    })
}

fn described(about: &ApiInfo, operation: &Operation, components: &mut Map<String, Value>) -> Value {
    let form = &operation.form;
    let mut parameters = path_parameters(&operation.shown_path());
    parameters.extend(form.query.iter().map(|parameter| query_parameter(parameter, components)));
    let mut answers: Map<String, Value> = form
        .answers
        .iter()
        .map(|answer| (answer.status.to_string(), described_answer(answer, components)))
        .collect();
    for (status, meaning) in about.problems {
        let schema = (about.problem)().schema(components);
        let content = json!({ about.problem_media: { "schema": schema } });
        let problem = json!({ "description": meaning, "content": content });
        answers.entry(status.to_string()).or_insert(problem);
    }
    let mut described = json!({
        "operationId": operation.id,
        "summary": operation.summary,
        "tags": [operation.group],
        "responses": answers,
    });
    if !parameters.is_empty() {
        described["parameters"] = Value::from(parameters);
    }
    if let Some(body) = &form.body {
        let content = json!({ "application/json": { "schema": body.schema(components) } });
        described["requestBody"] = json!({ "required": true, "content": content });
    }
    described
}

impl Operation {
    fn shown_path(&self) -> String {
        self.path.replace("{id}", &format!("{{{}}}", self.id_name))
    }
}

fn path_parameters(path: &str) -> Vec<Value> {
    let names = path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let parameter = |name: &str| json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } });
    names.map(parameter).collect()
}

fn query_parameter(parameter: &Parameter, components: &mut Map<String, Value>) -> Value {
    let schema = parameter.shape.schema(components);
    json!({ "name": parameter.name, "in": "query", "required": false, "schema": schema })
}

fn described_answer(answer: &Answer, components: &mut Map<String, Value>) -> Value {
    match &answer.shape {
        Some(shape) => {
            let content = json!({ answer.media: { "schema": shape.schema(components) } });
            json!({ "description": "Done", "content": content })
        }
        None => json!({ "description": "Done" }),
    }
}
