//! The attributes in the path of a call have the object's live values.

use serde_json::{Value as Json, json};

use crate::REST;
use crate::support::{Answer, Server, Step, provider};

/// Returns a descriptor of things that the API knows by their names, which can change.
fn named(update: &str) -> String {
    let text = REST.replace(
        "update = [ { call = \"rest: PATCH /things/${id}\", sends = \"changed\" } ]",
        &format!("update = [ {update} ]"),
    );
    let text = text.replace("DELETE /things/${id}", "DELETE /things/${name}");
    assert!(text.contains(update) && text.contains("DELETE /things/${name}"));
    text
}

/// Returns the call and the body of an update's phase of thing t1. The name "old" is to become "new", and 3
/// to become 4.
async fn sent(update: &str, phase: usize, live: Json) -> (String, Json) {
    let server =
        Server::start(|_, _| Answer::json(200, json!({"id": "t1", "name": "new", "size": 4})))
            .await;
    let step = Step::update("thing", "t1", json!({"name": "new", "size": 4})).live(live);
    step.phase(phase, "t1").perform(&provider(&named(update), &server.address)).await.unwrap();
    let request = &server.requests()[0];
    (request.line(), request.json())
}

fn old() -> Json {
    json!({"name": "old", "size": 3})
}

const RENAME: &str = r#"{ call = "rest: PATCH /things/${name}", sends = "changed" }"#;

/// A rename goes to the path with the old name: an object that has the new name already belongs to another
/// owner.
#[tokio::test]
async fn a_rename_goes_to_the_old_name() {
    let new = json!({"name": "new", "size": 4});
    for update in [
        RENAME,
        r#"{ call = "rest: PATCH /things/${name}", sends = "all" }"#,
        r#"{ call = "rest: PATCH /things/${name}", sends = { name = "${name}", size = "${size}" } }"#,
    ] {
        assert_eq!(sent(update, 0, old()).await, ("PATCH /things/old".into(), new.clone()));
    }
    let update = r#"{ call = "rest: PATCH /things/${name}", sends = { secret = "${name}" } }"#;
    let moved = sent(update, 0, old()).await;
    assert_eq!(moved, ("PATCH /things/old".into(), json!({"secret": "new"})));
    let update = r#"{ call = "rest: POST /things/${name}?to=${name}" }"#;
    assert_eq!(sent(update, 0, old()).await.0, "POST /things/old?to=new");
}

/// A phase before the rename uses the old name in its path, a phase after it the new one.
#[tokio::test]
async fn each_phase_goes_to_the_name_of_its_time() {
    let resize = r#"{ call = "rest: PUT /things/${name}/size", sends = { size = "${size}" } }"#;
    for (update, phase, live, line) in [
        (format!("{resize}, {RENAME}"), 0, old(), "PUT /things/old/size"),
        (format!("{resize}, {RENAME}"), 1, old(), "PATCH /things/old"),
        (format!("{RENAME}, {resize}"), 0, old(), "PATCH /things/old"),
        (format!("{RENAME}, {resize}"), 1, json!({"name": "new"}), "PUT /things/new/size"),
    ] {
        assert_eq!(sent(&update, phase, live).await.0, line, "{update}");
    }
}

/// An attribute that stands only in a path is sent by the path.
#[tokio::test]
async fn what_stands_in_a_path_alone_is_sent_by_it() {
    for sends in ["", ", sends = { name = \"${name}\" }"] {
        let update = format!("{{ call = \"rest: POST /things/${{id}}/size/${{size}}\"{sends} }}");
        assert_eq!(sent(&update, 0, old()).await.0, "POST /things/t1/size/4");
    }
}

#[tokio::test]
async fn where_nobody_knows_the_old_name_the_new_one_is_all_there_is() {
    for live in [json!({}), json!({"name": null})] {
        assert_eq!(sent(RENAME, 0, live).await.0, "PATCH /things/new");
    }
}

#[tokio::test]
async fn a_delete_goes_to_the_live_name() {
    let server = Server::start(|_, _| Answer::empty(204)).await;
    let step = Step::delete("thing", "t1").live(old());
    step.perform(&provider(&named(RENAME), &server.address)).await.unwrap();
    assert_eq!(server.lines(), ["DELETE /things/old"]);
}

/// An object with a one-time name is activated under that name.
#[tokio::test]
async fn what_is_half_made_has_the_name_that_it_was_made_with() {
    let text = named(RENAME).replace(
        "PATCH /things/${id}\", sends = { name",
        "PATCH /things/${name}\", sends = { name",
    );
    let server =
        Server::start(|_, _| Answer::json(200, json!({"id": "t1", "name": "new", "size": 4})))
            .await;
    let step = Step::create("thing", json!({"name": "new", "size": 4})).phase(1, "t1");
    step.live(json!({"name": "plumb-x"})).perform(&provider(&text, &server.address)).await.unwrap();
    assert_eq!(server.lines(), ["PATCH /things/plumb-x"]);
}
