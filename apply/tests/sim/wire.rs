//! The harness at the wire: the real HTTP provider speaks to the model of the service, and faults strike
//! between the two.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use engine::journal::ProgramKind;
use engine::schema::ProviderSchema;
use engine::state::ObjectId;
use engine::value::{Attributes, Value};
use provider_http::{
    Broken, HttpProvider, Method, Network, Request, Response, Settings, Transport,
};
use provider_port::{Call, Error, Lookup, Object, Provider, Reply, SendPermit};
use serde_json::Value as Json;

use crate::api_variant::descriptor;
use crate::audit::{Asking, Meant};
use crate::bad_wire;
use crate::bugs::Bug;
use crate::cloud::{Cloud, Live, lock};
use crate::port::SentRequest;
use crate::runner::Runner;
use crate::service::{self, Asked, Understood, body, empty, page};

/// The longest time for which a template counts as used after an endpoint let go of it, in milliseconds.
const USED_MS: u64 = 20_000;

tokio::task_local! {
    /// The call at the provider port for which the provider sends requests.
    static CALL: Arc<Made>;
}

/// A call at the provider port, and what became of its requests.
struct Made {
    asking: Asking,
    /// True if a request of the call may have had an effect.
    arrived: AtomicBool,
}

/// Returns the HTTP provider of a runner, which sends over the runner's line.
pub(crate) fn provider(runner: &Arc<Runner>, bug: Option<Bug>) -> Overseen {
    let environment = |name: &str| match name {
        "PLUMB_SERVERLESS_API_KEY" => Some("a key".to_owned()),
        "PLUMB_SERVERLESS_REST_URL" => Some("http://service.test/v1".to_owned()),
        "PLUMB_SERVERLESS_GRAPHQL_URL" => Some("http://service.test/graphql".to_owned()),
        "PLUMB_SERVERLESS_QUEUE_URL" => Some("http://queue.test/v2".to_owned()),
        _ => None,
    };
    let transport = bad_wire::wire(bug, Arc::new(Line(runner.clone())));
    let network = Arc::new(Network::new(transport));
    let settings = Settings::new(&environment).network(network);
    let inner = HttpProvider::configure(descriptor(), &settings).ok().unwrap();
    Overseen { runner: runner.clone(), inner }
}

/// The real provider of a runner. It notes for each request which call at the port the request is for.
pub(crate) struct Overseen {
    runner: Arc<Runner>,
    inner: HttpProvider,
}

/// The send permit of a call at the port. A process that stands still gets it only after it goes on.
struct Awake<'a> {
    runner: &'a Runner,
    permit: &'a dyn SendPermit,
}

#[async_trait]
impl SendPermit for Awake<'_> {
    async fn ask(&self) -> Result<(), Error> {
        self.runner.die_at("leave").await;
        self.runner.stand_still().await;
        self.permit.ask().await
    }
}

#[async_trait]
impl Provider for Overseen {
    fn schema(&self) -> Arc<ProviderSchema> {
        self.inner.schema()
    }

    fn settle(&self) -> Duration {
        self.inner.settle()
    }

    async fn list(&self, ty: &str) -> Result<Vec<Object>, Error> {
        self.inner.list(ty).await
    }

    async fn read(&self, ty: &str, id: &ObjectId) -> Result<Object, Error> {
        self.inner.read(ty, id).await
    }

    async fn find(&self, ty: &str, create: &Lookup<'_>) -> Result<Vec<Object>, Error> {
        self.inner.find(ty, create).await
    }

    async fn perform(&self, call: &Call<'_>) -> Result<Reply, Error> {
        let runner = &*self.runner;
        runner.die_at("call").await;
        let permit = &Awake { runner, permit: call.permit };
        let made = Arc::new(Made { asking: Asking::from(call), arrived: AtomicBool::new(false) });
        let call = Call { permit, ..crate::bugs::copy(call) };
        CALL.scope(made, self.inner.perform(&call)).await
    }
}

/// A runner's line to the service.
struct Line(Arc<Runner>);

#[async_trait]
impl Transport for Line {
    async fn send(&self, request: Request) -> Result<Response, Broken> {
        let words = format!("{} {}", word(request.method), request.url.path());
        let understood = match service::understand(&request) {
            Ok(understood) => understood,
            Err(why) => {
                lock(&self.0.cloud).violation(format!("a request that nobody understands: {why}"));
                return Ok(empty(400));
            }
        };
        if understood.is_look() {
            self.look(&words, &understood).await
        } else {
            self.change(&words, &understood).await
        }
    }

    fn random(&self) -> u64 {
        self.0.with_rng(crate::rng::Rng::next)
    }
}

fn word(method: Method) -> &'static str {
    match method {
        Method::Get => "GET",
        Method::Post => "POST",
        Method::Put => "PUT",
        Method::Patch => "PATCH",
        Method::Delete => "DELETE",
    }
}

/// A failure of the server or of the way to it. It does not tell whether the request took effect.
#[derive(Clone, Copy, Debug)]
enum Noise {
    Lost,
    Internal,
    Gateway,
    Unavailable,
    Page,
    Cut,
    Errors,
}

const NOISES: [Noise; 7] = [
    Noise::Lost,
    Noise::Internal,
    Noise::Gateway,
    Noise::Unavailable,
    Noise::Page,
    Noise::Cut,
    Noise::Errors,
];

impl Noise {
    fn answer(self, asked: &Understood) -> Result<Response, Broken> {
        Ok(match self {
            Self::Lost => return Err(Broken::Lost("the connection was reset".to_owned())),
            Self::Internal => body(500, &serde_json::json!({ "error": "something broke" })),
            Self::Gateway => page(502, "Bad gateway"),
            Self::Unavailable => empty(503),
            Self::Page => page(200, "Sign in"),
            Self::Cut => {
                let mut cut = asked.shows(&serde_json::json!({ "id": "x", "name": "cut" }));
                cut.body.truncate(cut.body.len() / 2);
                if cut.body.is_empty() { page(200, "Cut") } else { cut }
            }
            // In GraphQL an error after the effect looks like one before it.
            Self::Errors if asked.alias.is_some() => asked.refuses(200, "internal error"),
            Self::Errors => body(504, &serde_json::json!({ "message": "upstream timed out" })),
        })
    }
}

impl Line {
    fn noise(&self) -> Noise {
        self.0.with_rng(|rng| *rng.pick(&NOISES))
    }

    fn throttle(&self) -> Response {
        let after = self.0.with_rng(|rng| *rng.pick(&["", "0", "1", "2.5", "7", "-3", "soon"]));
        let mut response = body(429, &serde_json::json!({ "error": "too many requests" }));
        if !after.is_empty() {
            response.headers.push(("retry-after".to_owned(), after.to_owned()));
        }
        response
    }

    async fn look(&self, words: &str, asked: &Understood) -> Result<Response, Broken> {
        let runner = &*self.0;
        runner.boundary("look").await;
        runner.latency().await;
        lock(&runner.cloud).catch_up();
        runner.boundary("look").await;
        if runner.strikes("looks_fail", runner.rates.looks_fail) {
            let (noise, kind) = (self.noise(), runner.with_rng(|rng| rng.below(4)));
            runner.note(format_args!("{words} fails: {noise:?} {kind}"));
            return match kind {
                0 => Ok(self.throttle()),
                1 => Err(Broken::NotSent("connection refused".to_owned())),
                _ => noise.answer(asked),
            };
        }
        Ok(match &asked.asked {
            Asked::List(ty) => asked.shows(&self.listed(ty, asked)),
            Asked::Read(_, id) => {
                let ago = runner.behind_ms();
                let cloud = lock(&runner.cloud);
                match cloud.seen(id, ago).filter(|live| *live.ty == *asked.ty()) {
                    Some(live) => {
                        runner.note_shown(&cloud, id, &live);
                        asked.shows(&asked.object(&cloud, id, &live))
                    }
                    None => asked.misses(),
                }
            }
            _ => unreachable!("it is a look"),
        })
    }

    /// Returns the objects that a list shows. The list may lag, leave objects out, or show an object twice.
    fn listed(&self, ty: &str, asked: &Understood) -> Json {
        let runner = &*self.0;
        let ago = runner.behind_ms();
        let cloud = lock(&runner.cloud);
        let objects = cloud.ago(ago);
        let own = objects.iter().filter(|(_, live)| &*live.ty == ty);
        let is_left_out =
            |id| runner.strikes("incomplete", runner.rates.incomplete) && cloud.is_young(id);
        let own = own.filter(|(id, _)| !is_left_out(id));
        let show = |(id, live): (&ObjectId, &Arc<Live>)| {
            runner.note_shown(&cloud, id, live);
            asked.object(&cloud, id, live)
        };
        let mut shown: Vec<Json> = own.map(show).collect();
        if runner.strikes("stale", runner.rates.stale)
            && let Some(twice) = shown.first().cloned()
        {
            shown.push(twice);
        }
        shown.into()
    }

    async fn change(&self, words: &str, asked: &Understood) -> Result<Response, Broken> {
        let runner = &*self.0;
        let Ok(made) = CALL.try_with(Clone::clone) else {
            lock(&runner.cloud).violation(format!("r{}: {words}: nobody called", runner.number));
            return Ok(empty(400));
        };
        let sent = match &asked.asked {
            Asked::Make(_, sent) | Asked::Change(_, _, sent) => sent.clone(),
            _ => Attributes::new(),
        };
        let meant = runner.audit(&made.asking, &sent);
        self.hold_against(words, asked, &made, &sent);
        runner.note(format_args!("{words} for {}", meant.address));
        if let Some(answer) = self.refused_before(asked) {
            return answer;
        }
        let request = request(asked, &made.asking, sent, meant);
        let mut wire = SentRequest { runner, request: Some(request) };
        runner.latency().await;
        runner.die_at("on the wire").await;
        let request = wire.request.take().unwrap();
        drop(wire);
        if runner.strikes("lost_before", runner.rates.lost_before) {
            made.arrived.store(true, Ordering::Relaxed);
            let noise = self.noise();
            runner.note(format_args!("  lost before: {noise:?}"));
            return noise.answer(asked);
        }
        if runner.strikes("late", runner.rates.late) {
            made.arrived.store(true, Ordering::Relaxed);
            let after = runner.late_by(&request);
            runner.note("  late");
            let mut cloud = lock(&runner.cloud);
            let at = cloud.now_ms() + after;
            cloud.postpone(at, request);
            return Err(Broken::Lost("nothing came within 90 s".to_owned()));
        }
        let answer = {
            let mut cloud = lock(&runner.cloud);
            cloud.catch_up();
            let first = self.effect(&mut cloud, asked, &request, &made);
            if runner.strikes("doubled", runner.rates.doubled) {
                cloud.note_second_execution(&request);
                let second = self.effect(&mut cloud, asked, &request, &made);
                if runner.with_rng(|rng| rng.per_mille(500)) { second } else { first }
            } else {
                first
            }
        };
        runner.latency().await;
        runner.boundary("answer").await;
        if runner.strikes("lost_after", runner.rates.lost_after) {
            let noise = self.noise();
            runner.note(format_args!("  lost after: {noise:?}"));
            made.arrived.store(true, Ordering::Relaxed);
            return noise.answer(asked);
        }
        // Some answers do not show the object.
        if answer.status < 300 && asked.alias.is_none() && runner.strikes("bare", runner.rates.bare)
        {
            runner.note("  bare");
            let status = runner.with_rng(|rng| *rng.pick(&[200, 201, 202, 204]));
            return Ok(empty(status));
        }
        Ok(answer)
    }

    /// Checks what only the wire can show: a request is the one that its call asks for, and it is not sent
    /// again after it may have had an effect.
    fn hold_against(&self, words: &str, asked: &Understood, made: &Made, sent: &Attributes) {
        let who = format!("r{}: {words}", self.0.number);
        let mut cloud = lock(&self.0.cloud);
        if made.arrived.load(Ordering::Relaxed) {
            cloud.violation(format!("{who}: sent again though it may have happened"));
        }
        if service::name_of(asked.ty()) != &*made.asking.ty {
            cloud.violation(format!("{who}: the call was about {}", made.asking.ty));
        }
        let id = match &asked.asked {
            Asked::Change(_, id, _) | Asked::End(_, id) => Some(id),
            _ => None,
        };
        if id != made.asking.id.as_ref() {
            cloud.violation(format!("{who}: the call was about {:?}", made.asking.id));
        }
        let name = sent.get("name").and_then(Value::as_str);
        if let (Asked::Make(..), Some(nonce)) = (&asked.asked, &made.asking.nonce)
            && !name.is_some_and(|name| nonce.is_in(name))
        {
            cloud.violation(format!("{who}: the one-time name is not in it"));
        }
    }

    /// Draws the faults that strike before a request can have an effect. Returns the answer, or None if no
    /// such fault strikes.
    fn refused_before(&self, asked: &Understood) -> Option<Result<Response, Broken>> {
        let runner = &*self.0;
        if runner.strikes("not_sent", runner.rates.not_sent) {
            runner.note("  not sent");
            return Some(Err(Broken::NotSent("connection refused".to_owned())));
        }
        if runner.strikes("throttled", runner.rates.throttled) {
            let in_words = asked.alias.is_some() && runner.with_rng(|rng| rng.per_mille(300));
            runner.note("  throttled");
            return Some(Ok(if in_words {
                asked.refuses(200, "Too many requests")
            } else {
                self.throttle()
            }));
        }
        if runner.strikes("refused", runner.rates.refused) {
            let status = runner.with_rng(|rng| *rng.pick(&[400, 405, 409, 410, 413, 422]));
            runner.note(format_args!("  refused {status}"));
            return Some(Ok(asked.refuses(status, "something must be otherwise")));
        }
        if runner.strikes("unauthenticated", runner.rates.unauthenticated) {
            runner.note("  unauthenticated");
            return Some(Ok(asked.refuses(401, "unauthorized")));
        }
        None
    }

    /// Executes a request, and returns the answer with the object as it is at that moment.
    fn effect(
        &self,
        cloud: &mut Cloud,
        asked: &Understood,
        request: &crate::cloud::Request,
        made: &Made,
    ) -> Response {
        if let Some((status, message)) = service::refusal(cloud, &asked.asked) {
            cloud.note(format_args!("  {message}"));
            return asked.refuses(status, message);
        }
        let before = request.id.as_ref().and_then(|id| cloud.objects.get(id).cloned());
        let done = match cloud.effect(request) {
            Ok(done) => done,
            Err(error) if error.kind == provider_port::Kind::NotFound => return asked.misses(),
            Err(error) => return asked.refuses(400, &format!("{error}: it must be otherwise")),
        };
        made.arrived.store(true, Ordering::Relaxed);
        if let (Some(id), Some(before)) = (&request.id, before) {
            self.linger(cloud, id, &before);
        }
        match done.and_then(|id| Some((cloud.objects.get(&id).cloned()?, id))) {
            Some((live, id)) => asked.shows(&asked.object(cloud, &id, &live)),
            None => asked.shows(&Json::Null),
        }
    }

    /// Makes the service slow to let go: a drained endpoint keeps its pods, and an image that an endpoint no
    /// longer names still counts as used, for a while.
    fn linger(&self, cloud: &mut Cloud, id: &ObjectId, before: &crate::cloud::Live) {
        if &*before.ty != "unit" {
            return;
        }
        let after = cloud.objects.get(id).cloned();
        let stuck = self.0.strikes("still_waiting", self.0.rates.still_waiting);
        let drained = after.as_ref().is_some_and(|live| live.number("workers") == Some(0));
        if before.number("workers") > Some(0) && drained {
            let ms = if stuck { 900_000 } else { self.0.with_rng(|rng| rng.below(3_000)) };
            cloud.linger(id.clone(), ms);
        }
        let image = |live: &crate::cloud::Live| live.text("image_id").map(str::to_owned);
        if let Some(image) =
            image(before).filter(|_| after.as_deref().and_then(image) != image(before))
        {
            cloud
                .linger(ObjectId(image.as_str().into()), self.0.with_rng(|rng| rng.below(USED_MS)));
        }
    }
}

/// Returns a request in the form that the simulated cloud executes.
fn request(
    asked: &Understood,
    asking: &Asking,
    mut sent: Attributes,
    meant: Meant,
) -> crate::cloud::Request {
    let (kind, words, creates, ends) = match &asked.asked {
        Asked::Make(..) => (ProgramKind::Create, "create", true, false),
        Asked::End(..) => (ProgramKind::Delete, "delete", false, true),
        _ => (ProgramKind::Update, "change", false, false),
    };
    let id = match &asked.asked {
        Asked::Change(_, id, _) | Asked::End(_, id) => Some(id.clone()),
        _ => None,
    };
    if creates && asked.ty() == "image" {
        sent.insert_absent("kind".into(), Value::string("NVIDIA"));
    }
    crate::cloud::Request {
        ty: asked.ty().into(),
        kind,
        creates,
        ends,
        id,
        nonce: asking.nonce.clone(),
        sent,
        address: meant.address,
        call: meant.call,
        words,
    }
}
