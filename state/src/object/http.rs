//! The HTTP client of the object stores' clients. A request with credentials goes to the host that was asked
//! for, and to no other. The client follows no redirect, sends no referer and uses no proxy of the
//! environment, as the provider does (`docs/state.md`). Its waits are bounded: a silent connection is given
//! up, and replaced by a new one.

use std::time::Duration;

use async_trait::async_trait;
use object_store::client::{
    ClientConfigKey, HttpClient, HttpConnector, HttpError, HttpRequest, HttpResponse, HttpService,
};
use object_store::{ClientOptions, Error};

/// The longest silence of a service after a small request.
const SILENCE: Duration = Duration::from_secs(10);
/// The longest time of a whole request.
const TOTAL: Duration = Duration::from_mins(2);
/// The largest small request, in bytes. With a larger one, the time to send it does not count as silence.
const LITTLE: usize = 256 * 1024;

/// Makes the clients. See the module.
#[derive(Clone, Copy, Debug)]
pub(super) struct Connector;

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let allows_http = options.get_config_value(&ClientConfigKey::AllowHttp);
        let is_plain = allows_http.as_deref() == Some("true");
        let connect = connect_timeout(options);
        let client = |silence| build(is_plain, connect, silence);
        Ok(HttpClient::new(Clients { quick: client(SILENCE)?, patient: client(TOTAL)? }))
    }
}

/// Returns the timeout for connecting: five seconds, or less if the client asks for that. The client asks a
/// special address if the machine has its own account; on most machines nothing answers there.
fn connect_timeout(options: &ClientOptions) -> Duration {
    let given = options.get_config_value(&ClientConfigKey::ConnectTimeout);
    let seconds = given.and_then(|text| text.strip_suffix('s')?.parse().ok());
    Duration::from_secs(seconds.unwrap_or(5)).min(Duration::from_secs(5))
}

fn build(
    is_plain: bool,
    connect: Duration,
    silence: Duration,
) -> object_store::Result<reqwest::Client> {
    reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .referer(false)
        .no_proxy()
        // The store's client decides about repetitions.
        .retry(reqwest::retry::never())
        .https_only(!is_plain)
        .user_agent(concat!("plumb/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(connect)
        .timeout(TOTAL)
        .read_timeout(silence)
        // This is below the idle time of common servers, so fewer requests meet a closing connection.
        .pool_idle_timeout(Duration::from_secs(20))
        .tcp_nodelay(true)
        .build()
        .map_err(|source| Error::Generic { store: "HTTP", source: Box::new(source) })
}

#[derive(Debug)]
struct Clients {
    quick: reqwest::Client,
    patient: reqwest::Client,
}

#[async_trait]
impl HttpService for Clients {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let is_little = request.body().content_length() <= LITTLE;
        let client = if is_little { &self.quick } else { &self.patient };
        client.call(request).await
    }
}
