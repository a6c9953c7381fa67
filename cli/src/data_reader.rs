//! Reads for look-ups: the outputs of other states, and the answers of web addresses.

use std::path::{Path, PathBuf};

use apply::session::fold_if_any;
use apply::{ApplyError, DataReader};
use engine::address::Name;
use engine::plan::{Fetch, HttpRequest, StatePlace, Unanswered};
use engine::state::Snapshot;
use engine::value::{Attributes, Datum, Path as ValuePath, Paths, Value};
use futures_util::future::BoxFuture;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use crate::checks::http::{Answer, Get, ask};
use crate::checks::shape;
use crate::error::CommandError;
use crate::folder::Folder;
use crate::stored_state;

/// A reader that takes relative paths from the folder of a spec.
pub(crate) struct Reader {
    folder: PathBuf,
}

impl Reader {
    /// Makes a reader for the spec of a folder.
    pub(crate) fn new(folder: &Folder) -> Self {
        Self { folder: folder.path().to_owned() }
    }

    async fn state(&self, place: &StatePlace) -> Result<Datum, CommandError> {
        let (store, shown) = match place {
            StatePlace::Folder(path) => {
                let folder = Folder::new(&self.folder, Some(Path::new(&**path)))?;
                (folder.store()?, path.to_string())
            }
            StatePlace::Backend(settings) => {
                let store = Folder::new(&self.folder, None)?.store_to_move(settings)?;
                let place = store.place();
                (store, place)
            }
        };
        let snapshot = fold_if_any(&store.load().await?).map_err(ApplyError::from)?;
        match snapshot {
            Some(snapshot) => outputs(&snapshot),
            None => Err(CommandError::new(format!("there is no state in {shown}"))
                .help("`plumb apply` there makes one")),
        }
    }
}

impl DataReader for Reader {
    fn read<'a>(&'a self, fetch: &'a Fetch) -> BoxFuture<'a, Result<Datum, Unanswered>> {
        Box::pin(async move {
            match fetch {
                Fetch::State(place) => self
                    .state(place)
                    .await
                    .map_err(|error| Unanswered { message: error.message, help: error.help }),
                Fetch::Http(request) => answer(request).await,
            }
        })
    }
}

/// Returns the outputs of a state. Sensitive outputs have no clear text.
fn outputs(snapshot: &Snapshot) -> Result<Datum, CommandError> {
    let (mut outputs, mut sensitive) = (Attributes::new(), Paths::none());
    for (name, output) in &snapshot.outputs {
        let value = output.value.value().map_err(|error| stored_state::damaged(&error))?;
        if output.sensitive {
            sensitive.insert(ValuePath::attribute("outputs").join(Name::clone(name)));
        }
        outputs.insert(name.clone(), value);
    }
    let value = Value::map(Attributes::from([("outputs".into(), Value::map(outputs))]));
    Ok(Datum { value, sensitive })
}

/// Sends the request of a look-up.
async fn answer(request: &HttpRequest) -> Result<Datum, Unanswered> {
    let plain = |message| Unanswered { message, help: None };
    let url = shape::url(&request.url).map_err(|message| plain(message.to_owned()))?;
    let headers = headers(request).map_err(plain)?;
    let get = Get { url, headers, secret: request.is_secret, timeout: request.timeout };
    let Answer { status, value } = ask(get).await.map_err(plain)?;
    let expected = &request.expected_status;
    let is_expected = match expected.as_slice() {
        [] => (200..300).contains(&status),
        statuses => statuses.contains(&i64::from(status)),
    };
    if is_expected { Ok(Datum::plain(value)) } else { Err(unexpected(status)) }
}

fn headers(request: &HttpRequest) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    for (name, value) in &request.headers {
        let wrong = || {
            let shown = if request.is_secret { "a header" } else { &**name };
            format!("`headers`: {shown} cannot be sent as it is")
        };
        let header = HeaderName::try_from(&**name).map_err(|_| wrong())?;
        let mut value = HeaderValue::try_from(&**value).map_err(|_| wrong())?;
        value.set_sensitive(true);
        headers.insert(header, value);
    }
    Ok(headers)
}

fn unexpected(status: u16) -> Unanswered {
    let help = if (300..400).contains(&status) {
        "no redirect is followed: give the address that it leads to".to_owned()
    } else {
        format!("where that is right, too: `expected_status = [200, {status}]`")
    };
    Unanswered { message: format!("the answer has status {status}"), help: Some(help) }
}
