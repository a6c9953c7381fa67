//! The refusals of the service, by the conclusions that they allow.

use engine::state::ObjectId;
use provider_port::{Kind, Object};
use serde_json::json;

use crate::support::{Service, attributes, create, delete, update};

#[tokio::test]
async fn a_volume_does_not_shrink() {
    let service = Service::start().await;
    let provider = service.provider();
    let wanted = json!({"name": "v", "size": 10, "data_center_id": "EU-RO-1"});
    let volume = create(&provider, ("network_volume", 0), &wanted).await.unwrap();
    let error =
        update(&provider, ("network_volume", 0), &volume, &json!({"size": 5})).await.unwrap_err();
    assert_eq!(error.kind, Kind::Rejected, "{error}");
}

/// Only the words of a GraphQL error show that nothing happened; the descriptor knows these words.
#[tokio::test]
async fn refused_endpoints_are_no_doubts() {
    let service = Service::with(|options| options.worker_quota = Some(5)).await;
    let provider = service.provider();
    let template = json!({"name": "t", "image_name": "i:1", "is_serverless": true});
    let template = create(&provider, ("template", 0), &template).await.unwrap();
    let good = json!({"name": "chat", "template_id": &*template.id.0, "gpu_ids": "ADA_24",
        "workers_min": 0, "workers_max": 1});
    let endpoint = create(&provider, ("endpoint", 1), &good).await.unwrap();
    for (change, words) in [
        (json!({"template_id": "nothing"}), "not found"),
        (json!({"network_volume_id": "nothing"}), "not found"),
        (json!({"gpu_ids": "ADA_25"}), "must be"),
        (json!({"idle_timeout": 100_000}), "must be"),
        (json!({"scaler_type": "MAGIC"}), "must be"),
        (json!({"locations": "MOON"}), "must be"),
        (json!({"type": "LB"}), "cannot be changed"),
        (json!({"workers_min": 3}), "must not be"),
        (json!({"workers_max": 50}), "cannot go beyond"),
        (json!({"name": "x".repeat(300)}), "must have"),
    ] {
        let error = update(&provider, ("endpoint", 1), &endpoint, &change).await.unwrap_err();
        assert_eq!(error.kind, Kind::Rejected, "{change}: {error}");
        assert!(error.to_string().contains(words), "{change}: {error}");
    }
}

/// A call with an attribute that REST does not accept is refused. The rules report it in the plan already.
#[tokio::test]
async fn what_rest_does_not_take_is_not_left_out_silently() {
    let service = Service::start().await;
    let provider = service.provider();
    let wanted = json!({"name": "chat", "template_id": "t", "gpu_type_ids": ["NVIDIA L4"],
        "workers_standby": 2});
    let error = create(&provider, ("endpoint", 0), &wanted).await.unwrap_err();
    assert_eq!(error.kind, Kind::Rejected);
    assert!(error.message.contains("takes no `workers_standby`"), "{error}");
    // The removal of an existing value is a change, too.
    let endpoint = Object { id: ObjectId("e".into()), attributes: attributes(&wanted) };
    let none = json!({"hub_release_id": null});
    let error = update(&provider, ("endpoint", 0), &endpoint, &none).await.unwrap_err();
    assert!(error.message.contains("takes no `hub_release_id`"), "{error}");
}

#[tokio::test]
async fn a_template_in_use_is_waited_for() {
    let service = Service::with_quirks("template-delay=1").await;
    let provider = service.provider();
    let template = json!({"name": "t", "image_name": "i:1", "is_serverless": true});
    let template = create(&provider, ("template", 0), &template).await.unwrap();
    let endpoint = json!({"name": "chat", "template_id": &*template.id.0, "gpu_ids": "ADA_24",
        "workers_min": 0, "workers_max": 0});
    let endpoint = create(&provider, ("endpoint", 1), &endpoint).await.unwrap();
    let deletes = async {
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        delete(&provider, "endpoint", &endpoint).await
    };
    let (template, endpoint) = tokio::join!(delete(&provider, "template", &template), deletes);
    template.unwrap();
    endpoint.unwrap();
}

#[tokio::test]
async fn a_name_that_is_taken() {
    let service = Service::start().await;
    let provider = service.provider();
    let auth = json!({"name": "hub", "username": "u", "password": "pull-secret"});
    create(&provider, ("registry_auth", 0), &auth).await.unwrap();
    let error = create(&provider, ("registry_auth", 0), &auth).await.unwrap_err();
    assert_eq!(error.kind, Kind::Rejected);
    assert!(!format!("{error} {error:?}").contains("pull-secret"));
}
