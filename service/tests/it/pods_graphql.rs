//! Tests of pods over GraphQL, with the queries of the real service's Python client and command
//! line.

use serde_json::{Value, json};

use crate::harness::Harness;
use crate::pods::{until, variable};

/// The query of the Python client for all pods.
const ALL: &str = "query myPods { myself { pods { id containerDiskInGb costPerHr desiredStatus dockerArgs \
    dockerId env gpuCount imageName lastStatusChange machineId memoryInGb name podType port ports \
    uptimeSeconds vcpuCount volumeInGb volumeMountPath machine { gpuDisplayName } } } }";

/// The query of the Python client for one pod.
const ONE: &str = "query pod($id: String!) { pod(input: {podId: $id}) { id name env desiredStatus ports \
    templateId networkVolumeId locked runtime { uptimeInSeconds ports { ip isIpPublic privatePort \
    publicPort type } gpus { id gpuUtilPercent memoryUtilPercent } container { cpuPercent } } \
    machine { podHostId gpuDisplayName location } } }";

async fn one(service: &Harness, id: &Value) -> Value {
    service.data(ONE, json!({ "id": id })).await["pod"].take()
}

/// Waits until a pod runs, and returns its `runtime`.
async fn runtime(service: &Harness, id: &Value) -> Value {
    until("the pod does not run", async || {
        let shown = one(service, id).await["runtime"].take();
        shown.is_object().then_some(shown)
    })
    .await
}

#[tokio::test]
async fn a_pod_lives_as_the_python_client_wants() {
    let service = Harness::start().await;
    let deploy = r#"mutation { podFindAndDeployOnDemand(input: {
        name: "trainer", imageName: "any:1", cloudType: ALL, startSsh: true, gpuTypeId: "NVIDIA L4",
        supportPublicIp: true, gpuCount: 2, volumeInGb: 10, minVcpuCount: 4, minMemoryInGb: 30,
        dataCenterId: null, dockerArgs: "", containerDiskInGb: 5, ports: "9300/http,22/tcp",
        volumeMountPath: "/plumb-gql", env: [{ key: "A", value: "one" }]
    }) { id imageName env machineId machine { podHostId } } }"#;
    let made = service.data(deploy, json!({})).await["podFindAndDeployOnDemand"].take();
    assert_eq!((&made["imageName"], &made["env"]), (&json!("any:1"), &json!(["A=one"])));
    let id = &made["id"];
    let shown = runtime(&service, id).await;
    assert_eq!(
        (&shown["ports"][0]["privatePort"], &shown["ports"][1]["type"]),
        (&json!(9300), &json!("tcp"))
    );
    assert_eq!(shown["gpus"].as_array().unwrap().len(), 2);
    let v1 = service.get(&format!("/pods/{}", id.as_str().unwrap())).await;
    assert_eq!(v1["portMappings"]["9300"], shown["ports"][0]["publicPort"]);
    assert_eq!(variable(&v1, "9300", "A").await, "one");
    let pods = service.data(ALL, json!({})).await["myself"]["pods"].take();
    assert_eq!((&pods[0]["id"], &pods[0]["costPerHr"]), (id, &json!(0.92)));
    assert_eq!((&pods[0]["vcpuCount"], &pods[0]["memoryInGb"]), (&json!(4), &json!(30)));
    assert_eq!(
        (&pods[0]["podType"], &pods[0]["ports"]),
        (&json!("RESERVED"), &json!("9300/http,22/tcp"))
    );
    assert_eq!(pods[0]["machine"]["gpuDisplayName"], "L4");
    let stop = "mutation stopPod($id: String!) { podStop(input: {podId: $id}) { id desiredStatus lastStatusChange } }";
    let stopped = service.data(stop, json!({ "id": id })).await["podStop"].take();
    assert_eq!(stopped["desiredStatus"], "EXITED");
    assert_eq!(one(&service, id).await["runtime"], Value::Null);
    let resume = "mutation($id: String!) { podResume(input: {podId: $id, gpuCount: 1}) { desiredStatus gpuCount memoryInGb } }";
    let resumed = service.data(resume, json!({ "id": id })).await["podResume"].take();
    assert_eq!(resumed, json!({ "desiredStatus": "RUNNING", "gpuCount": 1, "memoryInGb": 15 }));
    runtime(&service, id).await;
    let edit = r#"mutation($id: String!) { podEditJob(input: {podId: $id, env: [{ key: "A", value: "two" }],
        ports: "9301/http", dockerArgs: "", imageName: "any:2"}) { id imageName env } }"#;
    let edited = service.data(edit, json!({ "id": id })).await["podEditJob"].take();
    assert_eq!((&edited["imageName"], &edited["env"]), (&json!("any:2"), &json!(["A=two"])));
    let shown = until("the pod does not change", async || {
        let shown = one(&service, id).await["runtime"]["ports"].take();
        (shown[0]["privatePort"] == 9301).then_some(shown)
    })
    .await;
    let v1 = json!({ "portMappings": { "9301": shown[0]["publicPort"] } });
    assert_eq!(variable(&v1, "9301", "A").await, "two");
    let reset = "mutation($id: String!) { podReset(input: {podId: $id, hardReset: true}) { id } }";
    assert_eq!(service.data(reset, json!({ "id": id })).await["podReset"]["id"], *id);
    let terminate = "mutation($id: String!) { podTerminate(input: {podId: $id}) }";
    assert_eq!(service.data(terminate, json!({ "id": id })).await["podTerminate"], Value::Null);
    assert_eq!(one(&service, id).await, Value::Null);
    let message = service.fails(terminate, json!({ "id": id })).await;
    assert_eq!(message, "pod not found");
}

#[tokio::test]
async fn pods_with_a_bid_and_pods_without_gpus() {
    let service = Harness::start().await;
    let rent = "mutation m($input: PodRentInterruptableInput!) { podRentInterruptable(input: $input) \
                { id costPerHr podType ports volumeInGb } }";
    let input =
        json!({ "imageName": "x", "gpuTypeId": "NVIDIA L4", "bidPerGpu": 0.2, "templateId": "" });
    let made = service.data(rent, json!({ "input": input })).await["podRentInterruptable"].take();
    assert_eq!((&made["costPerHr"], &made["podType"]), (&json!(0.2), &json!("INTERRUPTABLE")));
    assert_eq!((&made["ports"], &made["volumeInGb"]), (&json!(""), &json!(0)));
    let without = json!({ "input": { "imageName": "x", "gpuTypeId": "NVIDIA L4" } });
    assert!(service.fails(rent, without).await.contains("bidPerGpu is required"));
    let id = &made["id"];
    let stop = "mutation($id: String!) { podStop(input: {podId: $id}) { id } }";
    service.data(stop, json!({ "id": id })).await;
    let resume = "mutation($id: String!) { podResume(input: {podId: $id}) { id } }";
    assert!(service.fails(resume, json!({ "id": id })).await.contains("bidPerGpu"));
    let bid = "mutation($id: String!, $bid: Float!) { podBidResume(input: {podId: $id, bidPerGpu: $bid}) \
               { desiredStatus costPerHr } }";
    let resumed = service.data(bid, json!({ "id": id, "bid": 0.3 })).await["podBidResume"].take();
    assert_eq!(resumed, json!({ "desiredStatus": "RUNNING", "costPerHr": 0.3 }));
    let cpu = r#"mutation { deployCpuPod(input: { name: "cpu", imageName: "x", cloudType: SECURE,
        instanceId: "cpu5c-4-8", templateId: "runpod-ubuntu", startSsh: true, dataCenterId: null })
        { id gpuCount vcpuCount memoryInGb } }"#;
    let made = service.data(cpu, json!({})).await["deployCpuPod"].take();
    let expected = json!({ "id": made["id"], "gpuCount": 0, "vcpuCount": 4, "memoryInGb": 8 });
    assert_eq!(made, expected);
    let wrong =
        r#"mutation { deployCpuPod(input: { imageName: "x", instanceId: "cpu5c-x" }) { id } }"#;
    assert!(service.fails(wrong, json!({})).await.contains("must look like"));
}
