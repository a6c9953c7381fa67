//! `plumb provider list`: the providers that come with Plumb, and those that the spec declares.

use std::path::Path;

use engine::diagnostics::FileId;
use render::{json, safe};
use serde_json::json;

use crate::args::{Form, SpecArgs};
use crate::error::{CommandError, Status};
use crate::folder::Folder;
use crate::output::Output;
use crate::{providers, resolved, stored_state};

/// A row of the list: a provider and its origin.
struct Row {
    name: String,
    origin: &'static str,
    types: usize,
}

pub(super) fn run(base: &Path, form: &Form, output: &Output) -> Result<Status, CommandError> {
    let rows = rows(base)?;
    output.data(&if form.is_json() {
        let rows = rows
            .iter()
            .map(|row| json!({"name": row.name, "origin": row.origin, "types": row.types}));
        json::pretty(&rows.collect::<serde_json::Value>())
    } else {
        table(&rows)
    });
    Ok(Status::Done)
}

fn rows(base: &Path) -> Result<Vec<Row>, CommandError> {
    let known = providers::known_schemas()?;
    let built_in = known.iter().map(|(name, schema)| Row {
        name: name.to_string(),
        origin: "built in",
        types: schema.types.len(),
    });
    let mut rows: Vec<Row> = built_in.collect();
    for name in provider_http::catalog_names() {
        let text = provider_http::catalog(name).unwrap_or_default();
        let descriptor = provider_http::load(text, FileId(0)).0;
        let types = descriptor.map_or(0, |descriptor| descriptor.schema().types.len());
        rows.push(Row { name: format!("catalog:{name}"), origin: "catalog", types });
    }
    let folder = Folder::new(base, None)?;
    if folder.spec_if_any()?.is_some() {
        let spec = SpecArgs { unset: true, ..SpecArgs::default() };
        let resolved = resolved::read(&folder, base, &spec, &stored_state::no_state())?;
        let declared = resolved.schemas().iter().filter(|(name, _)| !known.contains_key(*name));
        rows.extend(declared.map(|(name, schema)| Row {
            name: name.to_string(),
            origin: "the spec",
            types: schema.types.len(),
        }));
    }
    Ok(rows)
}

fn table(rows: &[Row]) -> String {
    let names = rows.iter().map(|row| row.name.len()).max().unwrap_or_default();
    let origins = rows.iter().map(|row| row.origin.len()).max().unwrap_or_default();
    let line = |row: &Row| {
        let types = if row.types == 1 { "type" } else { "types" };
        let text = format!("{:names$}  {:origins$}  {} {types}", row.name, row.origin, row.types);
        format!("{}\n", safe::text(&text))
    };
    rows.iter().map(line).collect()
}
