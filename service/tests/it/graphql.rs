//! Tests of GraphQL.

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::Harness;

const SAVE: &str = "mutation Save($input: EndpointInput!) { saveEndpoint(input: $input) {
    id name gpuIds templateId type idleTimeout locations flashBootType scalerType scalerValue
    workersMin workersMax networkVolumeId version } }";

async fn save(service: &Harness, input: Value) -> Value {
    service.data(SAVE, json!({ "input": input })).await["saveEndpoint"].take()
}

#[tokio::test]
async fn an_endpoint_lives_from_create_to_delete() {
    let service = Harness::start().await;
    let (volume, template) = (service.volume("v", 1).await, service.template("t").await);
    let input = json!({ "name": "chat", "templateId": template, "gpuIds": "ADA_24,AMPERE_48",
        "workersMin": 0, "workersMax": 5, "idleTimeout": 30, "locations": "EU-RO-1,US",
        "flashBootType": "FLASHBOOT", "scalerValue": 9, "networkVolumeId": volume });
    let made = save(&service, input).await;
    assert_eq!(made["type"], "QB");
    assert_eq!((&made["workersMax"], &made["flashBootType"]), (&json!(5), &json!("FLASHBOOT")));
    let id = made["id"].as_str().unwrap();
    assert_eq!(id.len(), 14);
    let over_rest = service.get(&format!("/endpoints/{id}")).await;
    assert_eq!(over_rest["gpuTypeIds"][0], "NVIDIA GeForce RTX 4090");
    assert_eq!(over_rest["dataCenterIds"], json!(["EU-RO-1"]));
    let delete = "mutation($id: String!) { deleteEndpoint(id: $id) }";
    let message = service.fails(delete, json!({ "id": id })).await;
    assert!(message.contains("workersMin and workersMax"), "{message}");
    let drained = json!({ "id": id, "name": "chat", "gpuIds": "ADA_24,AMPERE_48",
        "workersMin": 0, "workersMax": 0 });
    save(&service, drained).await;
    let done = service.data(delete, json!({ "id": id })).await;
    assert_eq!(done, json!({ "deleteEndpoint": null }));
    assert_eq!(
        service.data("{ myself { endpoints { id } } }", json!({})).await["myself"]["endpoints"],
        json!([])
    );
}

#[tokio::test]
async fn saving_resets_what_is_left_out() {
    let service = Harness::start().await;
    let (volume, template) = (service.volume("v", 1).await, service.template("t").await);
    let all = json!({ "name": "chat", "templateId": template, "gpuIds": "ADA_24", "workersMax": 7,
        "idleTimeout": 60, "scalerValue": 9, "scalerType": "REQUEST_COUNT", "locations": "CZ",
        "networkVolumeId": volume, "flashBootType": "FLASHBOOT" });
    let id = save(&service, all).await["id"].clone();
    let after = save(&service, json!({ "id": id, "name": "chat 2" })).await;
    let expected = json!({ "id": id, "name": "chat 2", "gpuIds": "ADA_24", "templateId": template,
        "type": "QB", "idleTimeout": 10, "locations": null, "flashBootType": "OFF",
        "scalerType": "QUEUE_DELAY", "scalerValue": 4, "workersMin": 0, "workersMax": 3,
        "networkVolumeId": null, "version": 1 });
    assert_eq!(after, expected);
}

#[tokio::test]
async fn rules_are_kept() {
    let service = Harness::start().await;
    let template = service.template("t").await;
    let good = json!({ "name": "chat", "templateId": template, "gpuIds": "ADA_24" });
    let with = |more: Value| {
        let mut input = good.clone();
        input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({ "input": input })
    };
    for (wrong, expected) in [
        (json!({ "gpuIds": "ADA_25" }), "AMPERE_16"),
        (json!({ "gpuIds": null }), "gpuIds is required"),
        (json!({ "templateId": "nothing" }), "not found"),
        (json!({ "templateId": null }), "templateId is required"),
        (json!({ "locations": "XX" }), "locations"),
        (json!({ "scalerType": "X" }), "QUEUE_DELAY"),
        (json!({ "type": "XX" }), "QB"),
        (json!({ "workersMin": 4, "workersMax": 2 }), "4 > 2"),
        (json!({ "workersMax": -1 }), "workersMax"),
        (json!({ "networkVolumeId": "nothing" }), "not found"),
        (json!({ "name": "ab" }), "3 characters"),
        (json!({ "id": "nothing" }), "endpoint not found"),
    ] {
        let message = service.fails(SAVE, with(wrong.clone())).await;
        assert!(message.contains(expected), "{wrong}: {message}");
    }
    let (status, body) = service.graphql(SAVE, with(json!({ "flashBootType": "FAST" }))).await;
    assert_eq!(status, 400, "{body}");
}

#[tokio::test]
async fn documents_are_parsed_and_validated() {
    let service = Harness::start().await;
    for (query, expected) in [
        ("{ myself { endpoints { id", "Unexpected"),
        ("{ myself { nothing } }", "nothing"),
        ("{ myself }", "myself"),
        ("mutation { deleteEndpoint(id: 5) }", "id"),
        (
            "mutation { saveEndpoint(input: { name: \"x\", flashBootType: \"FLASHBOOT\" }) { id } }",
            "",
        ),
        ("{ ...f }", "f"),
        ("query($x: Nope = 1) { myself { id } }", "Unknown type \"Nope\""),
        ("query($x: [[Nope!]!] = []) { myself { id } }", "Unknown type \"Nope\""),
        ("query($x: Nope) { myself { id } }", "Unknown type \"Nope\""),
        ("query($x: Query = { a: 1 }) { myself { id } }", "x"),
        ("", ""),
    ] {
        let (status, body) = service.graphql(query, json!({})).await;
        assert_eq!(status, 400, "{query}: {body}");
        assert!(body.get("data").is_none(), "{body}");
        let message = body["errors"][0]["message"].as_str().unwrap();
        assert!(message.contains(expected), "{query}: {message}");
        assert_eq!(body["errors"][0]["extensions"]["code"], "GRAPHQL_VALIDATION_FAILED");
    }
    let url = format!("{}?api_key=wrong", service.addresses.graphql);
    let body = json!({ "query": "{ myself { id } }" });
    let response = service.client.post(url).json(&body).send().await.unwrap();
    assert_eq!(response.status(), 401);
    let bearer = service.client.post(&service.addresses.graphql).bearer_auth(crate::harness::KEY);
    assert_eq!(bearer.json(&body).send().await.unwrap().status(), 200);
}

#[tokio::test]
async fn fragments_that_spread_themselves_are_refused_at_once() {
    let service = Harness::start().await;
    let cycle = format!("{{ ...a }} fragment a on Query {{ {} }}", "...a ".repeat(60));
    let (status, body) = service.graphql(&cycle, json!({})).await;
    assert_eq!(status, 400);
    let message = body["errors"][0]["message"].as_str().unwrap();
    assert!(message.contains("Cannot spread fragment \"a\""), "{message}");
}

#[tokio::test]
async fn aliases_fragments_and_partial_failures_work() {
    let service = Harness::start().await;
    let query = "mutation { a: createNetworkVolume(input: {name: \"a\", size: 1, dataCenterId: \"EU-RO-1\"}) { ...v }
        b: createNetworkVolume(input: {name: \"b\", size: 5000, dataCenterId: \"EU-RO-1\"}) { ...v } }
        fragment v on NetworkVolume { name size }";
    let (status, body) = service.graphql(query, json!({})).await;
    assert_eq!(status, 200, "{body}");
    assert_eq!(body["errors"][0]["path"], json!(["b"]), "{body}");
    assert_eq!(body["errors"][0]["extensions"]["code"], "RUNPOD");
    assert_eq!(body["data"], json!({ "a": { "name": "a", "size": 1 }, "b": null }));
    assert_eq!(service.get("/networkvolumes").await.as_array().unwrap().len(), 1);
    let query = "query q($with: Boolean!) { myself { n: networkVolumes { name size @include(if: $with) } } }";
    let shown = service.data(query, json!({ "with": false })).await;
    assert_eq!(shown["myself"]["n"], json!([{ "name": "a" }]));
}

#[tokio::test]
async fn an_endpoint_of_rest_shows_its_pools() {
    let service = Harness::start().await;
    let template = service.template("t").await;
    let types = ["NVIDIA A40", "NVIDIA L4", "NVIDIA RTX A6000"];
    let body = json!({ "name": "by type", "templateId": template, "gpuTypeIds": types });
    let id = service.post("/endpoints", body).await["id"].clone();
    let query = "query($id: String!) { myself { endpoint(id: $id) { gpuIds workersMax pods { id desiredStatus }
        template { name env { key value } } networkVolume { id } } serverlessDiscount { type } maxServerlessConcurrency } }";
    let shown = service.data(query, json!({ "id": id })).await["myself"].take();
    assert_eq!(shown["endpoint"]["gpuIds"], "AMPERE_48,AMPERE_24");
    assert_eq!(shown["endpoint"]["template"], json!({ "name": "t", "env": [] }));
    assert_eq!(shown["serverlessDiscount"], Value::Null);
}

#[tokio::test]
async fn sparse_mutations_templates_and_credentials_work() {
    let service = Harness::start().await;
    let template = service.template("t").await;
    let input = json!({ "name": "chat", "templateId": template, "gpuIds": "ADA_24",
        "workersMax": 7, "idleTimeout": 60 });
    let id = save(&service, input).await["id"].clone();
    let query = "mutation($i: UpdateEndpointWorkersMaxInput!) { updateEndpointWorkersMax(input: $i) { workersMax idleTimeout } }";
    let done = service.data(query, json!({ "i": { "endpointId": id, "workerCount": 2 } })).await;
    assert_eq!(done["updateEndpointWorkersMax"], json!({ "workersMax": 2, "idleTimeout": 60 }));
    let saved = service
        .data(
            "mutation { saveTemplate(input: { name: \"g\", imageName: \"i\", containerDiskInGb: 5, volumeInGb: 0,
                dockerArgs: \"{\\\"cmd\\\":[\\\"a\\\"],\\\"entrypoint\\\":[]}\", env: [{key: \"A\", value: \"1\"}] }) { id ports env { key value } } }",
            json!({}),
        )
        .await["saveTemplate"]
        .take();
    let over_rest = service.get(&format!("/templates/{}", saved["id"].as_str().unwrap())).await;
    assert_eq!(
        (&over_rest["dockerStartCmd"], &over_rest["env"]),
        (&json!(["a"]), &json!({ "A": "1" }))
    );
    let swap = "mutation($i: UpdateEndpointTemplateInput!) { updateEndpointTemplate(input: $i) { templateId version } }";
    let done =
        service.data(swap, json!({ "i": { "endpointId": id, "templateId": saved["id"] } })).await;
    assert_eq!(done["updateEndpointTemplate"], json!({ "templateId": saved["id"], "version": 1 }));
    let delete = "mutation($n: String!) { deleteTemplate(templateName: $n) }";
    assert_eq!(service.data(delete, json!({ "n": "t" })).await, json!({ "deleteTemplate": null }));
    assert!(service.fails(delete, json!({ "n": "g" })).await.contains("in use"));
    assert!(service.fails(delete, json!({ "n": "t" })).await.contains("not found"));
    let auth = service
        .data("mutation { saveRegistryAuth(input: {name: \"h\", username: \"u\", password: \"p\"}) { id name } }", json!({}))
        .await["saveRegistryAuth"]
        .take();
    let rotate =
        "mutation($i: UpdateRegistryAuthInput!) { updateRegistryAuth(input: $i) { id name } }";
    let input = json!({ "id": auth["id"], "username": "u2", "password": "p2" });
    assert_eq!(service.data(rotate, json!({ "i": input })).await["updateRegistryAuth"], auth);
    let creds = service.data("{ myself { containerRegistryCreds { id name } } }", json!({})).await;
    assert_eq!(creds["myself"]["containerRegistryCreds"], json!([auth]));
    let delete = "mutation($i: String!) { deleteRegistryAuth(registryAuthId: $i) }";
    service.data(delete, json!({ "i": auth["id"] })).await;
    assert!(service.fails(delete, json!({ "i": auth["id"] })).await.contains("not found"));
}

#[tokio::test]
async fn variables_are_an_object_or_nothing() {
    let service = Harness::start().await;
    let query = "query($secret: Boolean = false) { myself { id @skip(if: $secret) } }";
    for given in [json!("{\"secret\": true}"), json!([]), json!(1)] {
        let (status, body) = service.graphql(query, given).await;
        assert_eq!(status.as_u16(), 400, "{body}");
        assert_eq!(body["errors"][0]["message"], "`variables` must be an object");
    }
    for given in [json!(null), json!({})] {
        assert!(service.data(query, given).await["myself"]["id"].is_string());
    }
}

/// A field that clients select and only the real service has is null; it is not an error.
#[tokio::test]
async fn what_only_the_real_service_has_is_null() {
    let service = Harness::start().await;
    let id = service.endpoint(json!({ "workersMax": 0 })).await;
    let query = "{ myself { clientBalance currentSpendPerHr spendLimit minBalance underBalance pubKey \
        pods { id containerDiskInGb env runtime { ports { ip isIpPublic privatePort publicPort type } } \
        machine { gpuDisplayName } } containerRegistryCreds { id registryAuth } \
        podTemplates { portsConfig { port name } advancedStart config earned runtimeInMin } \
        endpoints { id aiKey activeBuildid } } \
        pod(input: { podId: \"none\" }) { id costPerHr podType machineId machine { podHostId } } }";
    let shown = service.data(query, Value::Null).await;
    assert_eq!((&shown["pod"], &shown["myself"]["clientBalance"]), (&Value::Null, &Value::Null));
    assert_eq!(
        shown["myself"]["endpoints"],
        json!([{ "id": id, "aiKey": null, "activeBuildid": null }])
    );
    let query = "query($id: String) { gpuTypes(input: { id: $id }) { id displayName maxGpuCount cudaCores \
        oneMonthPrice secureSpotPrice lowestPrice(input: { gpuCount: 2 }) { minimumBidPrice \
        uninterruptablePrice stockStatus } } }";
    let shown = service.data(query, json!({ "id": "NVIDIA L4" })).await;
    assert_eq!(shown["gpuTypes"][0]["lowestPrice"]["uninterruptablePrice"], 0.68);
    assert_eq!(service.data(query, Value::Null).await["gpuTypes"].as_array().unwrap().len(), 49);
    let (status, _) = service.graphql("{ myself { nonsense } }", Value::Null).await;
    assert_eq!(status, 400, "what nobody has is an error");
}

#[tokio::test]
async fn keys_and_secrets_are_those_of_the_other_interfaces() {
    let service = Harness::start().await;
    let update = "mutation { updateUserSettings(input: { pubKey: \"ssh-rsa A me\\nssh-rsa B me\" }) { pubKey } }";
    service.data(update, Value::Null).await;
    let queue = &service.addresses.queue;
    let (_, keys) = service.send(Method::GET, &format!("{queue}/account/ssh-keys"), None).await;
    assert_eq!(keys["keys"], json!(["ssh-rsa A me", "ssh-rsa B me"]));
    let create = "mutation { secretCreate(input: { name: \"a\", value: \"s3cr3t\" }) { id name } }";
    let made = service.data(create, Value::Null).await["secretCreate"]["id"].take();
    assert!(service.fails(create, Value::Null).await.contains("exists already"));
    let (_, shown) = service.send(Method::GET, &format!("{queue}/account/secrets"), None).await;
    assert_eq!(shown["secrets"][0]["id"], made);
    let delete = "mutation($id: ID!) { secretDelete(id: $id) }";
    assert_eq!(service.data(delete, json!({ "id": made })).await, json!({ "secretDelete": null }));
    assert_eq!(
        service.data("{ myself { secrets { name } } }", Value::Null).await["myself"]["secrets"],
        json!([])
    );
}

#[tokio::test]
async fn what_flash_asks_before_it_makes_an_endpoint_is_answered() {
    let service = Harness::start().await;
    let flavors = "query($flavor: CpuFlavorInput, $size: SpecificsInput) { \
                   cpuFlavors(input: $flavor) { id specifics(input: $size) { stockStatus } } }";
    let asked = |instance: &str| {
        json!({ "flavor": { "id": "cpu3c" },
        "size": { "dataCenterId": "EU-RO-1", "instanceId": instance } })
    };
    let there =
        json!({ "cpuFlavors": [{ "id": "cpu3c", "specifics": { "stockStatus": "High" } }] });
    assert_eq!(service.data(flavors, asked("cpu3c-2-4")).await, there);
    let other = service.data(flavors, asked("cpu5c-2-4")).await;
    assert_eq!(other["cpuFlavors"][0]["specifics"]["stockStatus"], Value::Null);
    let price = "query($of: GpuLowestPriceInput) { \
                 gpuTypes(input: { ids: [\"NVIDIA L4\"] }) { lowestPrice(input: $of) { stockStatus } } }";
    let of = json!({ "of": { "gpuCount": 1, "includeAiApi": true, "compliance": [] } });
    let stock = service.data(price, of).await;
    assert_eq!(stock["gpuTypes"][0]["lowestPrice"]["stockStatus"], "High");
    let apps = "{ myself { flashApps { id name flashEnvironments { id name state createdAt \
                activeBuildId } flashBuilds { id createdAt } } } }";
    assert_eq!(service.data(apps, json!({})).await["myself"]["flashApps"], json!([]));
    service.endpoint(json!({})).await;
    let endpoints = service.data("{ myself { endpoints { idePodId } } }", json!({})).await;
    assert_eq!(endpoints["myself"]["endpoints"][0]["idePodId"], Value::Null);
}
