//! The client of the job API against the service: the calls that it repeats, and those that it never repeats.

use std::time::{Duration, Instant};

use provider_http::Settings;
use provider_port::{Error, Kind, Notice};
use provider_serverless::jobs::{Follow, Health, Jobs, Status, Submission, Wait};
use serde_json::json;

use crate::support::{Service, create};

/// Returns the job API of a service.
fn jobs(service: &Service, key: &str) -> Jobs {
    let environment = |name: &str| match name {
        "PLUMB_SERVERLESS_QUEUE_URL" => Some(service.addresses.queue.clone()),
        "PLUMB_SERVERLESS_API_KEY" => Some(key.to_owned()),
        _ => None,
    };
    Jobs::open(&provider_serverless::read().unwrap(), &Settings::new(&environment))
        .unwrap_or_else(|wrong| panic!("{wrong:#?}"))
}

/// Makes an endpoint without workers, so that its jobs wait.
async fn endpoint(service: &Service) -> String {
    let provider = service.provider();
    let template = json!({ "name": "jobs", "image_name": "e:1", "is_serverless": true });
    let template = create(&provider, ("template", 0), &template).await.unwrap();
    let endpoint = json!({ "name": "jobs", "template_id": template.id.to_string(),
        "gpu_ids": "ADA_24", "workers_min": 0, "workers_max": 0 });
    create(&provider, ("endpoint", 1), &endpoint).await.unwrap().id.to_string()
}

fn submission() -> Submission {
    Submission::new("{\"a\":1}").unwrap()
}

fn queued(health: &Health) -> i64 {
    health.jobs["inQueue"]
}

fn silent(_: Notice) {}

#[tokio::test]
async fn the_life_of_a_job_that_nobody_takes() {
    let service = Service::start().await;
    let id = endpoint(&service).await;
    let jobs = jobs(&service, &service.addresses.key);
    let endpoint = jobs.endpoint(&id, &silent);
    let job = endpoint.run(&submission()).await.unwrap();
    assert_eq!(job.status, Status::InQueue);
    let began = Instant::now();
    let second = Wait::nearest(Duration::from_secs(1));
    let waited = endpoint.status_sync(&job.id, second).await.unwrap();
    assert_eq!(waited.status, Status::InQueue);
    assert!(began.elapsed() >= Duration::from_millis(900), "the service held it back");
    let sync = endpoint.run_sync(&submission(), second).await.unwrap();
    assert!(sync.id.starts_with("sync-") && sync.status == Status::InQueue);
    assert_eq!(queued(&endpoint.health().await.unwrap()), 2);
    assert_eq!(endpoint.cancel(&job.id).await.unwrap().status, Status::Cancelled);
    let mut follow = Follow::new(&endpoint, waited);
    assert_eq!(follow.look().await.unwrap().status, Status::Cancelled);
    let refused = endpoint.retry(&job.id).await.unwrap_err();
    assert!(matches!(refused.kind, Kind::Rejected) && refused.help.is_some(), "{refused:?}");
    assert_eq!(endpoint.purge().await.unwrap().removed, 1);
    let gone = endpoint.status(&sync.id).await.unwrap_err();
    assert_eq!(gone.kind, Kind::NotFound);
    let mut follow = Follow::new(&endpoint, sync);
    assert_eq!(follow.look().await.unwrap_err().kind, Kind::NotFound);
}

#[tokio::test]
async fn too_many_calls_wait_as_long_as_the_service_asks() {
    let service = Service::with(|options| {
        options.faults = vec!["op=POST /run,nth=1,kind=status429:1".parse().unwrap()];
    })
    .await;
    let id = endpoint(&service).await;
    let jobs = jobs(&service, &service.addresses.key);
    let told = std::sync::Mutex::new(Vec::new());
    let tell = |notice| told.lock().unwrap().push(notice);
    let endpoint = jobs.endpoint(&id, &tell);
    let began = Instant::now();
    endpoint.run(&submission()).await.unwrap();
    assert!(began.elapsed() >= Duration::from_secs(1), "{:?}", began.elapsed());
    assert_eq!(queued(&endpoint.health().await.unwrap()), 1);
    let told = told.lock().unwrap();
    let [Notice::Retrying { after, .. }] = told.as_slice() else { panic!("{told:?}") };
    assert_eq!(*after, Duration::from_secs(1));
}

#[tokio::test]
async fn a_lost_answer_makes_no_second_job() {
    for kind in ["lost", "error500-after", "error500-before"] {
        let service = Service::with(|options| {
            options.faults = vec![format!("op=POST /run,nth=1,kind={kind}").parse().unwrap()];
        })
        .await;
        let id = endpoint(&service).await;
        let jobs = jobs(&service, &service.addresses.key);
        let endpoint = jobs.endpoint(&id, &silent);
        let error: Error = endpoint.run(&submission()).await.unwrap_err();
        assert_eq!(error.kind, Kind::InDoubt, "{kind}");
        assert!(error.help.unwrap().contains("not sent a second time"), "{kind}");
        let expected = i64::from(kind != "error500-before");
        assert_eq!(queued(&endpoint.health().await.unwrap()), expected, "{kind}");
    }
}

#[tokio::test]
async fn errors_hold_no_key() {
    let service = Service::start().await;
    let id = endpoint(&service).await;
    let key = "canary-key-2c9";
    let jobs = jobs(&service, key);
    let error = jobs.endpoint(&id, &silent).run(&submission()).await.unwrap_err();
    assert_eq!(error.kind, Kind::Unauthenticated);
    assert!(!format!("{error:?}").contains(key), "{error:?}");
    let error = jobs.endpoint("a/../b", &silent).health().await.unwrap_err();
    assert!(error.message.contains("is not the id of an endpoint"), "{error:?}");
}
