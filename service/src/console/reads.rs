//! The reads of the page that no API offers: the exact texts of inputs and outputs, and the list of
//! logs.

use axum::Extension;
use axum::extract::{Path, State};
use axum::http::{HeaderName, HeaderValue, Uri};
use axum::response::Response;
use rusqlite::{Connection, OptionalExtension as _, params};
use serde_json::{Map, Value, json};
use tokio::time::{Duration, Instant};

use super::Shared;
use super::session::SignedIn;
use crate::auth::{self, Principal};
use crate::jobs::output;
use crate::jobs::record::Request;
use crate::keys::{Rights, list_keys};
use crate::memory_budget::MemoryShare;
use crate::problem::Problem;
use crate::resources::endpoint::Endpoint;
use crate::resources::volume::Volume;
use crate::rest::answer::json_text;
use crate::store::objects;
use crate::workers::logs;

type Answer = Result<Response, Problem>;

/// The time that an answer waits for its memory.
const ROOM_TIMEOUT: Duration = Duration::from_secs(10);

/// The header with the bytes of the whole text, of which an answer may contain only the beginning.
const WHOLE_BYTES: HeaderName = HeaderName::from_static("x-plumb-bytes");

/// `GET /console/jobs/{endpoint}/{id}/{input|output}`: the exact text; with `?most=BYTES` only its
/// beginning.
pub(super) async fn job_part(
    State(console): Shared,
    Path((endpoint, id, part)): Path<(String, String, String)>,
    uri: Uri,
) -> Answer {
    let column = match part.as_str() {
        "input" => "request",
        "output" => "output",
        _ => return Err(Problem::not_found("path")),
    };
    let most = auth::query(&uri, "most").and_then(|most| most.parse::<usize>().ok());
    let store = &console.app.store;
    let (of, job) = (endpoint.clone(), id.clone());
    let measure = move |conn: &Connection| {
        let sql = format!(
            "select coalesce(octet_length({column}), 0) from jobs where id = ?1 and endpoint = ?2"
        );
        let found = conn.prepare_cached(&sql)?.query_row(params![job, of], |row| row.get(0));
        found.optional()?.ok_or_else(|| Problem::not_found("job"))
    };
    let bytes: i64 = store.read(measure).await?;
    let mut share = MemoryShare::default();
    share.grow_to(usize::try_from(bytes).unwrap_or(0), Instant::now() + ROOM_TIMEOUT).await?;
    let read = move |conn: &Connection| {
        let sql = format!("select {column} from jobs where id = ?1 and endpoint = ?2");
        let found = conn.prepare_cached(&sql)?.query_row(params![id, endpoint], |row| row.get(0));
        found.optional()?.ok_or_else(|| Problem::not_found("job"))
    };
    let text: Option<String> = store.read(read).await?;
    let mut text = text.unwrap_or_default();
    if part == "input" {
        text = Request::input(&text).unwrap_or_default();
    }
    let whole = text.len();
    if let Some(most) = most {
        text.truncate(text.floor_char_boundary(most));
    }
    let mut response = output::held(text, share);
    response.headers_mut().insert(WHOLE_BYTES, HeaderValue::from(whole));
    Ok(response)
}

/// `GET /console/logs/{endpoint}`: the workers with a log, including ended ones, the newest first.
pub(super) async fn logs(State(console): Shared, Path(endpoint): Path<String>) -> Answer {
    let app = &console.app;
    let id = endpoint.clone();
    app.store.read(move |conn| objects::get::<Endpoint>(conn, &id)).await?;
    let (data, id) = (app.options.data.clone(), endpoint);
    let found = tokio::task::spawn_blocking(move || logs::of_endpoint(&data, &id)).await;
    let shown: Vec<_> = found
        .unwrap_or_default()
        .into_iter()
        .map(|log| {
            json!({
                "worker": log.worker,
                "bytes": log.bytes,
                "written": log.written_at,
                "lives": app.fleet.worker(&log.worker).is_some(),
            })
        })
        .collect();
    Ok(json_text(json!({ "logs": shown }).to_string()))
}

/// `GET /console/usage`: the bytes in each volume that has been counted.
pub(super) async fn usage(State(console): Shared) -> Answer {
    let app = &console.app;
    let volumes = app.store.read(|conn| objects::list::<Volume>(conn, 0)).await?;
    let level =
        |volume: Volume| Some((volume.id.clone(), app.usage.level(&volume.id)?.used.into()));
    let used: Map<String, Value> = volumes.into_iter().filter_map(level).collect();
    Ok(json_text(Value::Object(used).to_string()))
}

/// `GET /console/keys`: the names and rights of the keys, without the keys themselves.
pub(super) async fn keys(
    State(console): Shared,
    Extension(signed_in): Extension<SignedIn>,
) -> Answer {
    let own = match console.app.keys.principal(&signed_in.key) {
        Some(Principal::Limited { name, .. }) => Some(name),
        _ => None,
    };
    let data = console.app.options.data.clone();
    let found = tokio::task::spawn_blocking(move || list_keys(&data)).await;
    let records = found.map_err(|_| Problem::internal())?.map_err(|error| {
        // The cause names files of the data folder. Only the log shows it.
        Problem::because(format!("the keys cannot be read: {error}"))
    })?;
    let account = json!({ "name": null, "rights": Rights::default().to_string(), "created": null,
        "isOwn": own.is_none() });
    let limited = records.iter().map(|record| {
        json!({ "name": record.name, "rights": record.rights.to_string(),
            "created": record.created_at, "isOwn": own.as_ref() == Some(&record.name) })
    });
    let shown: Vec<Value> = std::iter::once(account).chain(limited).collect();
    Ok(json_text(json!({ "keys": shown }).to_string()))
}
