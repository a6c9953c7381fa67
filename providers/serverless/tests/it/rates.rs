//! A service that accepts a limited number of requests a second.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use engine::journal::{PhaseRef, ProgramKind};
use engine::state::Nonce;
use provider_port::{Call, Notice, Provider as _};
use serde_json::json;

use crate::support::{Service, attributes};

const CREATES: usize = 240;
const RATE: u32 = 60;

fn limits() -> service::RateLimits {
    RATE.to_string().parse().expect("a number is a rate")
}

/// Most calls are accepted at the first attempt, and the calls use the rate that the service allows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_rate_is_learned() {
    let service = Service::with(|options| options.rate = limits()).await;
    let provider = Arc::new(service.provider());
    let refused = Arc::new(AtomicUsize::new(0));
    let began = Instant::now();
    let creates: Vec<_> = (0..CREATES)
        .map(|number| {
            let (provider, refused) = (provider.clone(), refused.clone());
            tokio::spawn(async move {
                let note = move |notice: Notice| {
                    if matches!(notice, Notice::Retrying { .. }) {
                        refused.fetch_add(1, Ordering::Relaxed);
                    }
                };
                let bytes = u128::try_from(number).unwrap().to_le_bytes();
                let desired =
                    attributes(&json!({"name": "v", "size": 1, "data_center_id": "EU-RO-1"}));
                let call = Call {
                    ty: "network_volume",
                    phase: PhaseRef::new(ProgramKind::Create, 0, 0, 2),
                    id: None,
                    nonce: Some(&Nonce::from_random(bytes)),
                    desired: &desired,
                    live: None,
                    changed: &desired.keys().cloned().collect(),
                    secrets: &provider_port::Secrets::default(),
                    permit: &provider_port::Always,
                    progress: &note,
                };
                provider.perform(&call).await.unwrap();
            })
        })
        .collect();
    for create in creates {
        create.await.unwrap();
    }
    let (refused, seconds) = (refused.load(Ordering::Relaxed), began.elapsed().as_secs_f64());
    assert_eq!(provider.list("network_volume").await.unwrap().len(), CREATES);
    let share = refused * 100 / (CREATES + refused);
    assert!(share <= 10, "{refused} of {CREATES} creates were refused");
    assert!(seconds < 15.0, "{seconds} s where the rate allows 4");
}
