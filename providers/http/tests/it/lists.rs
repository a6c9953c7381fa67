//! Lists: joined, with pages, with duplicates, in any order.

use provider_port::{Kind, Lookup, Provider as _};
use serde_json::json;

use crate::REST;
use crate::support::{Answer, Server, nonce, provider, texts};

fn shown(objects: &[provider_port::Object]) -> String {
    let line = |object: &provider_port::Object| format!("{} {:?}", object.id, object.attributes);
    objects.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[tokio::test]
async fn lists_are_joined_by_id() {
    let text = REST.replace(
        "list = { call = \"rest: GET /things\", items = \"data\" }",
        "list = [\"rest: GET /a\", \"rest: GET /b\"]",
    );
    let server = Server::start(|_, request| match request.path.as_str() {
        "/a" => Answer::json(200, json!([
            {"id": "t2", "name": "two"}, {"id": "t1", "name": "one"}, {"id": "t2", "name": "two"},
        ])),
        _ => Answer::json(200, json!([
            {"id": "t3", "name": "three"}, {"id": "t1", "name": "other", "size": 4},
        ])),
    })
    .await;
    let objects = provider(&text, &server.address).list("thing").await.unwrap();
    insta::assert_snapshot!(shown(&objects), @r#"
t1 {"id": "t1", "name": "one", "size": 4}
t2 {"id": "t2", "name": "two"}
t3 {"id": "t3", "name": "three"}
"#);
}

#[tokio::test]
async fn attributes_that_do_not_show_are_not_there() {
    let server = Server::start(|_, _| {
        Answer::json(200, json!({"data": [{"id": "t1", "size": null, "secret": "s", "new": 1}]}))
    })
    .await;
    let objects = provider(REST, &server.address).list("thing").await.unwrap();
    insta::assert_snapshot!(shown(&objects), @r#"t1 {"id": "t1", "size": null}"#);
}

#[tokio::test]
async fn pages() {
    for (paging, second, requests) in [
        ("page = \"page\", size_as = \"n\", size = 2", "/things?page=2&n=2", 3),
        ("cursor = \"after\", next = \"meta.next\"", "/things?after=c%2F1", 2),
        ("link = true", "/things?page=two", 2),
    ] {
        let text =
            REST.replace("items = \"data\"", &format!("items = \"data\", paging = {{ {paging} }}"));
        let server = Server::start(|number, _| match number {
            0 => Answer::json(
                200,
                json!({"data": [{"id": "t1"}, {"id": "t2"}], "meta": {"next": "c/1"}}),
            )
            .header("link", "</things?page=two>; rel=\"next\""),
            1 => Answer::json(200, json!({"data": [{"id": "t3"}], "meta": {"next": null}})),
            _ => Answer::json(200, json!({"data": []})),
        })
        .await;
        let objects = provider(&text, &server.address).list("thing").await.unwrap();
        assert_eq!(objects.len(), 3, "{paging}");
        assert_eq!(server.lines()[1], format!("GET {second}"), "{paging}");
        assert_eq!(server.requests().len(), requests, "{paging}");
    }
}

/// Many servers limit the size of their pages without saying so, or leave items out of a page. A list ends at
/// a page that is empty, does not exist, or is the last one again.
#[tokio::test]
async fn a_short_page_is_no_end() {
    let text = REST.replace(
        "items = \"data\"",
        "items = \"data\", paging = { page = \"page\", size_as = \"n\", size = 100 }",
    );
    let last = [
        Answer::json(200, json!({"data": []})),
        Answer::json(404, json!({"detail": "Invalid page."})),
        Answer::json(200, json!({"data": [{"id": "t3"}]})),
    ];
    for last in last {
        let server = Server::start(move |number, _| match number {
            0 => Answer::json(200, json!({"data": [{"id": "t1"}, {"id": "t2"}]})),
            1 => Answer::json(200, json!({"data": [{"id": "t3"}]})),
            _ => last.clone(),
        })
        .await;
        let objects = provider(&text, &server.address).list("thing").await.unwrap();
        assert_eq!(objects.len(), 3);
        assert_eq!(server.requests().len(), 3);
    }
    let server = Server::start(|_, _| Answer::json(404, json!({}))).await;
    assert!(provider(&text, &server.address).list("thing").await.is_err(), "there is a first page");
}

#[tokio::test]
async fn a_link_to_another_server_is_refused() {
    let text = REST.replace("items = \"data\"", "items = \"data\", paging = { link = true }");
    let other = Server::start(|_, _| Answer::json(200, json!({"data": []}))).await;
    let link = format!("<{}/things>; rel=\"next\"", other.address);
    let server =
        Server::start(move |_, _| Answer::json(200, json!({"data": []})).header("link", &link))
            .await;
    let error = provider(&text, &server.address).list("thing").await.unwrap_err();
    assert_eq!(error.kind, Kind::Rejected);
    assert!(texts(&error).contains("another server"), "{error}");
    assert!(other.requests().is_empty());
}

/// Half an emoji, a number out of range, or a byte order mark in one object does not prevent reading the
/// others.
#[tokio::test]
async fn one_value_that_cannot_be_read_hides_no_other_object() {
    let server = Server::start(|_, request| match request.path.as_str() {
        "/things" => Answer::text(
            200,
            "application/json",
            r#"{"data": [{"id": "t1", "name": "\ud83d"}, {"id": "t2", "size": 1e400},
                {"id": "t3", "name": "n", "size": 3, "other": "\ud83d"}, {"id": "\ud83d"}]}"#,
        ),
        _ => Answer::text(200, "application/json", r#"{"id": "t2", "size": 1e400}"#),
    })
    .await;
    let provider = provider(REST, &server.address);
    let objects = provider.list("thing").await.unwrap();
    insta::assert_snapshot!(shown(&objects), @r#"t3 {"id": "t3", "name": "n", "size": 3}"#);
    assert_eq!(server.requests().len(), 1);
    let own = engine::state::ObjectId("t2".into());
    let error = provider.read("thing", &own).await.unwrap_err();
    assert!(texts(&error).contains("`size`: it is a number that is too large"), "{error}");
}

/// A header may have several fields, and its values may contain commas.
#[tokio::test]
async fn links_are_read_by_their_grammar() {
    let text = REST.replace("items = \"data\"", "items = \"data\", paging = { link = true }");
    let server = Server::start(|number, _| match number {
        0 => Answer::json(200, json!({"data": [{"id": "t1"}]}))
            .header("link", "</things?f=a,b>; rel=\"first\"")
            .header("link", "<?f=a,b&page=2>; title=\"next, please\"; rel=\"next last\""),
        _ => Answer::json(200, json!({"data": [{"id": "t2"}]})),
    })
    .await;
    let objects = provider(&text, &server.address).list("thing").await.unwrap();
    assert_eq!((objects.len(), &*server.lines()[1]), (2, "GET /things?f=a,b&page=2"));

    for link in ["</things?page=2>; rel=\"next", "</things>; rel=next"] {
        let server =
            Server::start(move |_, _| Answer::json(200, json!({"data": []})).header("link", link));
        let error = provider(&text, &server.await.address).list("thing").await.unwrap_err();
        assert_eq!(error.kind, Kind::InDoubt, "{error}");
    }
}

/// A read without an object does not prove that the object is gone: a proxy before an API answers so, too, so
/// the lists decide.
#[tokio::test]
async fn a_read_that_shows_nothing_does_not_say_that_an_object_is_gone() {
    for nothing in [Answer::empty(200), Answer::empty(204), Answer::json(200, json!(null))] {
        let server = Server::start(move |_, request| match request.path.as_str() {
            "/things" => Answer::json(200, json!({"data": [{"id": "t1", "name": "n"}]})),
            _ => nothing.clone(),
        })
        .await;
        let provider = provider(REST, &server.address);
        let read = async |id: &str| {
            let id = engine::state::ObjectId(id.into());
            provider.read("thing", &id).await.unwrap_err().kind
        };
        assert_eq!(read("t1").await, Kind::InDoubt);
        assert_eq!(read("t2").await, Kind::NotFound);
    }
}

/// The result of a search counts only for objects with the searched name: an API that does not know a filter
/// shows everything.
#[tokio::test]
async fn what_a_search_shows_is_believed_where_it_bears_the_name() {
    let text = REST.replace(
        "identity = \"one_time_name\"",
        "identity = \"one_time_name\"\nfind = \"rest: GET /things?name=${one_time}\"",
    );
    let nonce = nonce();
    let lookup = Lookup { nonce: &nonce, desired: None };
    let find = async |own: serde_json::Value| {
        let answer = json!([{"id": "t1", "name": "a stranger's"}, own]);
        let server = Server::start(move |_, _| Answer::json(200, answer.clone())).await;
        let found = provider(&text, &server.address).find("thing", &lookup).await;
        found.map(|found| found.iter().map(|object| object.id.to_string()).collect::<Vec<_>>())
    };
    assert_eq!(find(json!({"id": "t2", "name": nonce.to_string()})).await.unwrap(), ["t2"]);
    assert!(find(json!({"id": "t2", "name": format!("{nonce}-2")})).await.unwrap().is_empty());
    let error = find(json!({"id": "t2"})).await.unwrap_err();
    assert_eq!(error.kind, Kind::InDoubt);
    assert!(texts(&error).contains("its search shows no `name`"), "{error}");
}

/// A search reads all its pages: an object on a later page exists, too.
#[tokio::test]
async fn a_search_goes_through_all_its_pages() {
    let text = REST.replace(
        "identity = \"one_time_name\"",
        "identity = \"one_time_name\"\nfind = { call = \"rest: GET /things?name=${one_time}\", \
         items = \"data\", paging = { cursor = \"after\", next = \"next\" } }",
    );
    let nonce = nonce();
    let own = json!({"data": [{"id": "t2", "name": nonce.to_string()}]});
    let server = Server::start(move |_, request| {
        let first = json!({"data": [{"id": "t1", "name": "a stranger's"}], "next": "t1"});
        Answer::json(200, if request.path.contains("after=t1") { own.clone() } else { first })
    })
    .await;
    let lookup = Lookup { nonce: &nonce, desired: None };
    let found = provider(&text, &server.address).find("thing", &lookup).await.unwrap();
    assert_eq!(found.iter().map(|object| &*object.id.0).collect::<Vec<_>>(), ["t2"]);
    let lines = server.lines();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines.iter().all(|line| line.contains(&format!("name={nonce}"))), "{lines:?}");
}

#[tokio::test]
async fn answers_of_another_shape_are_explained() {
    for (body, reason) in [
        (json!({"items": []}), "no list at `data`, where one was expected"),
        (json!({"data": [1]}), "no object where one was expected"),
        (json!({"data": [{"name": "x"}]}), "shows no `id`"),
    ] {
        let server = Server::start(move |_, _| Answer::json(200, body.clone())).await;
        let error = provider(REST, &server.address).list("thing").await.unwrap_err();
        assert!(texts(&error).contains(reason), "{error}");
    }
}

/// A wrong path to the list is no list that is left out: the message tells where the answer has one.
#[tokio::test]
async fn a_wrong_path_to_a_list_is_told_by_its_keys() {
    let mut said = Vec::new();
    for (path, body) in [
        ("itms", json!({"items": [{"id": "t1"}], "next": null})),
        ("all.itms", json!({"all": {"items": [], "count": 0}, "more": []})),
        ("itms", json!([{"id": "t1"}])),
        ("itms", json!({"count": 0})),
    ] {
        let text = REST.replace("items = \"data\"", &format!("items = \"{path}\""));
        let server = Server::start(move |_, _| Answer::json(200, body.clone())).await;
        said.push(texts(&provider(&text, &server.address).list("thing").await.unwrap_err()));
    }
    insta::assert_snapshot!(said.join("\n"), @r#"
    InDoubt: GET /things got an answer that cannot be read: it shows no list at `itms`, where one was expected; it has `items`, `next` -> Some("`items` is the path to the list in the answer, such as `items = \"items\"`")
    InDoubt: GET /things got an answer that cannot be read: it shows no list at `all.itms`, where one was expected; it has `all.count`, `all.items` -> Some("`items` is the path to the list in the answer, such as `items = \"all.items\"`")
    InDoubt: GET /things got an answer that cannot be read: it shows no list at `itms`, where one was expected -> Some("the answer itself is the list: leave `items` out")
    InDoubt: GET /things got an answer that cannot be read: it shows no list at `itms`, where one was expected; it has `count` -> Some("the descriptor and the API do not agree; where the API leaves out an empty list, say `may_be_left_out = true` in `list`")
    "#);
}

/// An answer without a list is an error, unless the descriptor says what an empty list looks like.
#[tokio::test]
async fn an_empty_list_may_be_left_out_where_the_descriptor_says() {
    let may = REST.replace("items = \"data\"", "items = \"data\", may_be_left_out = true");
    for (answer, is_empty) in [
        (Answer::json(200, json!({"data": null})), true),
        (Answer::json(200, json!({})), true),
        (Answer::json(200, json!({"next": ""})), true),
        (Answer::json(200, json!(null)), true),
        (Answer::empty(204), true),
        (Answer::json(200, json!({"message": "no tenant"})), false),
        (Answer::json(200, json!({"data": {}})), false),
        (Answer::json(200, json!("none")), false),
    ] {
        let server = Server::start(move |_, _| answer.clone()).await;
        let error = provider(REST, &server.address).list("thing").await.unwrap_err();
        assert!(texts(&error).contains("may_be_left_out"), "{error}");
        let listed = provider(&may, &server.address).list("thing").await;
        assert_eq!(listed.is_ok_and(|objects| objects.is_empty()), is_empty);
    }
}

#[tokio::test]
async fn numbered_pages_end_as_a_row_says() {
    let text =
        REST.replace("items = \"data\"", "items = \"data\", paging = { page = \"page\" }").replace(
            "error = [",
            "error = [ { status = 400, match = \"page\", kind = \"not_found\" },",
        );
    let server = Server::start(|number, _| match number {
        0 => Answer::json(200, json!({"data": [{"id": "t1"}]})),
        _ => Answer::json(400, json!({"message": "there is no such page"})),
    })
    .await;
    let objects = provider(&text, &server.address).list("thing").await.unwrap();
    assert_eq!((objects.len(), server.requests().len()), (1, 2));
    let server = Server::start(|_, _| Answer::json(400, json!({"message": "bad page"}))).await;
    provider(&text, &server.address).list("thing").await.unwrap_err();
}
