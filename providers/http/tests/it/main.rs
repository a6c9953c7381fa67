//! The provider against servers that answer well, badly, late or not at all.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod acme;
mod answers;
mod auth;
mod changes;
mod children;
mod connections;
mod empties;
mod graphql;
mod headers;
mod ids;
mod lists;
mod merges;
mod operations;
mod parents;
mod paths;
mod public_apis;
mod refusals;
mod suite;
mod support;
mod tokens;
mod waits;

/// A descriptor with an example of everything that REST needs.
const REST: &str = r#"
[provider]
name = "acme"
key = { env = "ACME_KEY" }

[api.rest]
address = { env = "ACME_URL", setting = "url", default = "https://api.acme.example/v1" }
auth = { header = "Authorization", value = "Bearer ${key}" }
names = "camel"
error = [ { name = "in_use", match = "in use" } ]

[type.thing]
list = { call = "rest: GET /things", items = "data" }
read = "rest: GET /things/${id}"
identity = "one_time_name"
create = [
  { call = "rest: POST /things", sends = { name = "${one_time}", size = "${size}", big_size = "${big_size}" } },
  { name = "activate", call = "rest: PATCH /things/${id}", sends = { name = "${name}" } },
]
update = [ { call = "rest: PATCH /things/${id}", sends = "changed" } ]
delete = [ { call = "rest: DELETE /things/${id}", retry_when = "in_use", retry_within = "100ms" } ]

[type.thing.attribute]
id = { type = "string", computed = true }
name = { type = "string", required = true }
size = { type = "integer", min = 0 }
big_size = { type = "integer" }
secret = { type = "string", sensitive = true, seen_in = "never" }
"#;
