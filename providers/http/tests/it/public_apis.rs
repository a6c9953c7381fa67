//! Descriptors of public APIs, each for what its API asks of a descriptor. They were written after the documentation of
//! these APIs, and never run against the services themselves.

use engine::state::ObjectId;
use provider_http::{HttpProvider, Settings};
use provider_port::{Kind, Provider as _};
use serde_json::json;

use crate::support::{Answer, Server, Step, descriptor, timing};

const CLOUDFLARE: &str = include_str!("public_apis/cloudflare.provider.toml");
const GRAFANA: &str = include_str!("public_apis/grafana.provider.toml");
const HETZNER: &str = include_str!("public_apis/hetzner.provider.toml");
const KUBERNETES: &str = include_str!("public_apis/kubernetes.provider.toml");

/// Returns the provider of a descriptor with the address of a server and a value for every key.
fn provider(text: &str, server: &Server) -> HttpProvider {
    let address = server.address.clone();
    let environment = move |name: &str| match name {
        name if name.ends_with("_URL") => Some(address.clone()),
        "CLOUDFLARE_EMAIL" => Some("jo@x.example".to_owned()),
        name if name.ends_with("_KEY") || name.ends_with("_TOKEN") => Some("s3cret".to_owned()),
        "CLOUDFLARE_ACCOUNT" => Some("a1".to_owned()),
        "GRAFANA_ORG" => Some("7".to_owned()),
        _ => None,
    };
    // Without a certificate of the client: the server of the test has no TLS.
    let text = text.lines().filter(|line| !line.starts_with("certificate"));
    let text = text.collect::<Vec<_>>().join("\n");
    let settings = Settings::new(&environment).timing(timing());
    HttpProvider::configure(descriptor(&text), &settings)
        .unwrap_or_else(|found| panic!("{found:#?}"))
}

/// Records stand below zones, and a key has two headers.
#[tokio::test]
async fn records_of_cloudflare() {
    let record = json!({"id": "r1", "name": "www.x.example", "type": "A", "content": "192.0.2.1"});
    let server = Server::start(move |_, request| match request.path.split('?').next() {
        Some("/zones") if request.path.contains("page=1") => {
            Answer::json(200, json!({"result": [{"id": "z1", "name": "x.example"}]}))
        }
        Some("/zones/z1/dns_records") if request.method == "POST" => {
            Answer::json(200, json!({ "result": record }))
        }
        Some("/zones/z1/dns_records") if request.path.contains("page=1&") => {
            Answer::json(200, json!({ "result": [record] }))
        }
        _ => Answer::json(200, json!({"result": []})),
    })
    .await;
    let provider = provider(CLOUDFLARE, &server);
    let listed = provider.list("record").await.unwrap();
    assert_eq!(listed.iter().map(|object| &*object.id.0).collect::<Vec<_>>(), ["z1|r1"]);
    let wanted = json!({"zone": "z1", "name": "www.x.example", "type": "A",
        "content": "192.0.2.1", "ttl": 1, "proxied": false});
    let made = Step::create("record", wanted).perform(&provider).await.unwrap();
    assert_eq!(&*made.object.unwrap().id.0, "z1|r1");
    let create = server.requests().pop().unwrap();
    assert_eq!(create.line(), "POST /zones/z1/dns_records");
    assert_eq!(create.headers["x-auth-email"], "jo@x.example");
    assert_eq!(create.headers["x-auth-key"], "s3cret");
    assert!(create.json().get("zone").is_none(), "the zone stands in the path alone");
}

/// The search shows dashboards, their reads show what is in them, and a header names the organisation.
#[tokio::test]
async fn dashboards_of_grafana() {
    let server = Server::start(|_, request| match &*request.line() {
        "GET /dashboards/uid/d1" => Answer::json(
            200,
            json!({"meta": {"folderUid": "f1"},
                "dashboard": {"uid": "d1", "title": "Load", "panels": [{"id": 1}], "version": 3}}),
        ),
        "GET /search?type=dash-db&limit=5000" => {
            Answer::json(200, json!([{"uid": "d1", "title": "Load", "folderUid": "f1"}]))
        }
        _ => Answer::json(200, json!({"uid": "d1", "status": "success"})),
    })
    .await;
    let provider = provider(GRAFANA, &server);
    let read = provider.read("dashboard", &ObjectId("d1".into())).await.unwrap();
    insta::assert_snapshot!(format!("{:?}", read.attributes), @r#"{"panels": [{"id": 1}], "title": "Load", "uid": "d1", "version": 3}"#);
    let wanted = json!({"uid": "d1", "title": "Load", "folder": "f1", "panels": []});
    Step::update("dashboard", "d1", wanted).perform(&provider).await.unwrap();
    let requests = server.requests();
    let save = requests.iter().find(|request| request.method == "POST").unwrap();
    assert_eq!(save.headers["x-grafana-org-id"], "7");
    assert_eq!(
        save.json(),
        json!({"dashboard": {"uid": "d1", "title": "Load", "panels": []}, "folderUid": "f1",
            "overwrite": true, "message": "by Plumb"})
    );
}

/// A change of the type stops the server, waits for the action, and starts it. A locked server is asked again.
#[tokio::test]
async fn servers_of_hetzner() {
    let server = Server::start(|index, request| match &*request.line() {
        "POST /servers/7/actions/shutdown" if index == 0 => {
            Answer::json(423, json!({"error": {"message": "server is locked"}}))
        }
        "POST /servers/7/actions/shutdown" | "POST /servers/7/actions/change_type" => {
            Answer::json(201, json!({"action": {"id": 9, "status": "running"}}))
        }
        "GET /actions/9" => Answer::json(
            200,
            json!({"action": {"status": "error", "error": {"message": "no such type here"}}}),
        ),
        "GET /servers/7" => Answer::json(
            200,
            json!({"server": {"id": 7, "name": "web", "status": "off", "labels": {},
                "server_type": {"name": "cx22"}, "image": {"name": "debian-13"}}}),
        ),
        _ => Answer::json(404, json!({})),
    })
    .await;
    let provider = provider(HETZNER, &server);
    let resize = |phase| {
        let wanted = json!({"name": "web", "server_type": "cx32", "upgrade_disk": false});
        let old = json!({"id": 7, "name": "web", "server_type": "cx22"});
        Step::update("server", "7", wanted).live(old).phase(phase, "7").variant(0)
    };
    resize(0).perform(&provider).await.unwrap();
    assert_eq!(server.lines()[..2], ["POST /servers/7/actions/shutdown"; 2], "it was locked");
    let error = resize(1).perform(&provider).await.unwrap_err();
    assert!(error.to_string().contains("no such type here"), "{error}");
    let change = server.requests().into_iter().find(|one| one.path.ends_with("change_type"));
    assert_eq!(change.unwrap().json(), json!({"server_type": "cx32", "upgrade_disk": false}));
}

/// Objects stand below namespaces, and changes go out as patches that the API merges.
#[tokio::test]
async fn config_maps_of_kubernetes() {
    let server = Server::start(|_, request| match &*request.line() {
        "GET /api/v1/namespaces" => {
            Answer::json(200, json!({"items": [{"metadata": {"name": "shop"}}]}))
        }
        "GET /api/v1/namespaces/shop/configmaps" => Answer::json(
            200,
            json!({"items": [{"metadata": {"name": "web"}, "data": {"a": "1", "b": "2"}}]}),
        ),
        "PATCH /api/v1/namespaces/shop/configmaps/web" => {
            Answer::json(200, json!({"metadata": {"name": "web"}, "data": {"a": "3"}}))
        }
        _ => Answer::json(404, json!({"message": "not found"})),
    })
    .await;
    let provider = provider(KUBERNETES, &server);
    let listed = provider.list("config_map").await.unwrap();
    assert_eq!(listed.iter().map(|object| &*object.id.0).collect::<Vec<_>>(), ["shop|web"]);
    let mut change = Step::update(
        "config_map",
        "shop|web",
        json!({"namespace": "shop", "name": "web", "data": {"a": "3"}}),
    )
    .live(json!({"namespace": "shop", "name": "web", "data": {"a": "1", "b": "2"}}));
    change.changed = vec!["data"];
    change.perform(&provider).await.unwrap();
    let patch = server.requests().pop().unwrap();
    assert_eq!(patch.headers["content-type"], "application/merge-patch+json");
    assert_eq!(patch.json(), json!({"data": {"a": "3", "b": null}}));
    let error = provider.read("config_map", &ObjectId("shop|none".into())).await.unwrap_err();
    assert_eq!(error.kind, Kind::NotFound, "{error}");
}
