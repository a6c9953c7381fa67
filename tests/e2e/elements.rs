//! Members of a group, which have their own calls to add and remove each one, also after a lost answer and
//! after a refusal in the middle.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::harness::Project;
use crate::small_server::{self, Answer, Request};

/// The only group, and the calls that changed its members.
#[derive(Default)]
struct Group {
    name: Option<String>,
    members: BTreeSet<String>,
    calls: Vec<String>,
    /// The number of answers that still get lost after their effect.
    lose: usize,
}

impl Group {
    fn answer(&mut self, request: &Request) -> Answer {
        let body: Value = serde_json::from_str(&request.body).unwrap_or_default();
        let path = request.path.split('?').next().unwrap_or_default();
        let parts: Vec<&str> = path.split('/').skip(1).collect();
        let own = self.name.as_ref().map(|name| json!({"id": "1", "name": name}));
        let shown = |own: Option<Value>| match own {
            Some(own) => Answer::new(200, own.to_string()),
            None => Answer::new(404, "{}"),
        };
        match (request.method.as_str(), parts.as_slice()) {
            ("GET", ["groups"]) => {
                Answer::new(200, json!(own.into_iter().collect::<Vec<_>>()).to_string())
            }
            ("POST" | "PATCH", _) => {
                self.name = body["name"].as_str().map(str::to_owned);
                if request.method == "POST" {
                    self.members.insert("founder".to_owned());
                }
                shown(Some(json!({"id": "1", "name": self.name})))
            }
            ("DELETE", ["groups", _]) => {
                *self = Self::default();
                Answer::new(204, "")
            }
            ("GET", ["groups", _]) => shown(own),
            ("GET", _) => self.page(request),
            (method, [.., member]) => self.change(method, member),
            _ => Answer::new(405, "{}"),
        }
    }

    /// Returns a page of two members.
    fn page(&self, request: &Request) -> Answer {
        let number = request.path.split_once("page=").and_then(|(_, text)| text.parse().ok());
        let number: usize = number.unwrap_or(1);
        let members = self.members.iter().map(|name| json!({"login": name}));
        let page: Vec<Value> = members.skip((number - 1) * 2).take(2).collect();
        let mut answer = Answer::new(200, json!(page).to_string());
        if self.members.len() > number * 2 {
            let next = number + 1;
            answer.headers.push(format!("Link: </groups/1/members?page={next}>; rel=\"next\""));
        }
        answer
    }

    fn change(&mut self, method: &str, member: &str) -> Answer {
        self.calls.push(format!("{method} {member}"));
        if member == "ghost" && method == "PUT" {
            return Answer::new(422, r#"{"message": "there is no ghost"}"#);
        }
        let is_there = match method {
            "PUT" => {
                self.members.insert(member.to_owned());
                true
            }
            _ => self.members.remove(member),
        };
        if self.lose > 0 {
            self.lose -= 1;
            return Answer::new(502, "<html>bad gateway</html>");
        }
        Answer::new(if is_there { 204 } else { 404 }, "")
    }
}

const DESCRIPTOR: &str = r#"
[provider]
name = "people"

[api.rest]
address = { setting = "url" }
message = "message"

[type.group]
list = "rest: GET /groups"
read = [ "rest: GET /groups/${id}", { call = "rest: GET /groups/${id}/members", as = "members", paging = { link = true } } ]
identity = "unique_name"
unique_name = true
create = [
  { call = "rest: POST /groups", sends = "all" },
  { name = "activate", call = "rest: PUT /groups/${id}/members/${element}", adds = "members" },
  { name = "activate", call = "rest: DELETE /groups/${id}/members/${element}", removes = "members" },
]
update = [
  { call = "rest: PATCH /groups/${id}", sends = "changed" },
  { call = "rest: PUT /groups/${id}/members/${element}", adds = "members" },
  { call = "rest: DELETE /groups/${id}/members/${element}", removes = "members" },
]
delete = [ { call = "rest: DELETE /groups/${id}" } ]

[type.group.attribute]
id = { type = "string", computed = true }
name = { type = "string", required = true }
members = { type = "set(string)", seen_in = "read", equal_as = "lower_case", wire = { rest = { write = false, read = "members", codec = { read = { wrap = "login" } } } } }
"#;

fn spec(url: &str, more: &str) -> String {
    format!(
        "[provider.people]\ndescriptor = \"./people.toml\"\nurl = \"{url}\"\n\n[resource.group.staff]\nname = \"staff\"\n{more}"
    )
}

#[test]
fn members_come_and_go_one_by_one() {
    let (url, world) = small_server::start(Group::answer);
    let project = Project::new(&spec(&url, "members = [\"ann\", \"bo\", \"cy\"]\n"));
    project.write("people.toml", DESCRIPTOR);
    let calls = || std::mem::take(&mut world.lock().expect("the group").calls);
    let members =
        || world.lock().expect("the group").members.clone().into_iter().collect::<Vec<_>>();
    let apply = |members: &str, status: i32| {
        project.write("plumb.toml", spec(&url, members));
        project.run(&["apply", "--yes"]).expect(status).said()
    };
    let nothing_left = || project.run(&["plan", "--detailed-exitcode"]).expect(0);

    project.run(&["apply", "--yes"]).expect(0);
    assert_eq!(calls(), ["PUT ann", "PUT bo", "PUT cy", "DELETE founder"]);
    nothing_left();
    apply("members = [\"bo\", \"cy\", \"dee\"]\n", 0);
    assert_eq!(calls(), ["PUT dee", "DELETE ann"]);
    nothing_left();

    // A member is added outside, and an apply removes it.
    world.lock().expect("the group").members.extend(["eve".to_owned()]);
    assert!(project.run(&["drift"]).expect(2).said().contains("eve"));
    apply("members = [\"bo\", \"cy\", \"dee\"]\n", 0);
    assert_eq!(calls(), ["DELETE eve"]);

    // A member in another spelling is the same member.
    apply("members = [\"Bo\", \"cy\", \"dee\"]\n", 0);
    apply("members = [\"Bo\", \"cy\", \"dee\", \"flo\"]\n", 0);
    apply("members = [\"bo\", \"cy\", \"dee\"]\n", 0);
    assert_eq!(calls(), ["PUT flo", "DELETE flo"]);

    // A member is refused in the middle. The changes before it are done, and the next apply makes the rest.
    let said = apply("members = [\"ann\", \"bo\", \"cy\", \"dee\", \"ghost\", \"zoe\"]\n", 1);
    assert!(said.contains("update failed: \"ghost\": PUT /groups/"), "{said}");
    assert_eq!(calls(), ["PUT ann", "PUT ghost"]);
    apply("members = [\"ann\", \"bo\", \"zoe\"]\n", 0);
    assert_eq!(calls(), ["PUT zoe", "DELETE cy", "DELETE dee"]);
    nothing_left();

    // Two answers are lost. Each change is made exactly once all the same.
    world.lock().expect("the group").lose = 2;
    project.write("plumb.toml", spec(&url, "members = [\"ann\", \"gus\", \"hal\"]\n"));
    for _ in 0..3 {
        if project.run(&["apply", "--yes"]).code == Some(0) {
            break;
        }
    }
    assert_eq!(members(), ["ann", "gus", "hal"]);
    let made = calls();
    let count = |call: &str| made.iter().filter(|made| *made == call).count();
    assert!(
        ["PUT hal", "PUT gus", "DELETE bo", "DELETE zoe"].iter().all(|it| count(it) == 1),
        "{made:?}"
    );
    nothing_left();

    // Members stay as they are if the spec does not give the attribute. An empty set removes all.
    apply("", 0);
    assert_eq!((calls(), members().len()), (Vec::new(), 3));
    apply("members = []\n", 0);
    assert_eq!(members(), Vec::<String>::new());
    project.run(&["destroy", "--yes"]).expect(0);
}

#[test]
fn phases_that_change_no_set_are_mistakes() {
    let project = Project::new("");
    for (from, to, said) in [
        ("adds = \"members\"", "adds = \"name\"", "elements are added to sets"),
        ("adds = \"members\"", "adds = \"people\"", "`people`"),
        ("members/${element}\", adds", "members\", adds", "the phase changes no element"),
        ("sends = \"all\"", "removes = \"members\"", "the phase changes no element"),
        ("adds = \"members\"", "adds = \"members\", removes = \"members\"", "in this way"),
    ] {
        assert!(DESCRIPTOR.contains(from));
        project.write("people.toml", DESCRIPTOR.replacen(from, to, 1));
        let found = project.run(&["provider", "check", "people.toml"]).expect(1).said();
        assert!(found.contains(said), "{to}: {found}");
    }
}
