//! An API that refuses a change of an object which was changed in the meantime: `If-Match`, and 412.

use crate::harness::Project;
use crate::small_server::{self, Answer, Request};

/// The only page on the server.
#[derive(Default)]
struct Page {
    text: Option<String>,
    version: u64,
    /// True if a stranger changes the page right before the next requested change.
    stranger_comes: bool,
    /// The requested changes, with their `If-Match`.
    asked: Vec<String>,
}

impl Page {
    fn show(&self) -> String {
        let text = self.text.clone().unwrap_or_default();
        format!("{{\"name\": \"home\", \"text\": \"{text}\"}}")
    }

    fn answer(&mut self, request: &Request) -> Answer {
        let Request { method, path, headers, body } = request;
        let (status, body) = self.act(method, path, headers.get("if-match"), body);
        let headers = vec![format!("ETag: \"{}\"", self.version)];
        Answer { headers, ..Answer::new(status, body) }
    }

    /// Returns the status and the body of an answer.
    fn act(
        &mut self,
        method: &str,
        path: &str,
        condition: Option<&String>,
        body: &str,
    ) -> (u16, String) {
        let exists = self.text.is_some();
        match (method, path) {
            ("GET", "/pages") if exists => (200, format!("[{}]", self.show())),
            ("GET", "/pages") => (200, "[]".to_owned()),
            ("GET", _) if exists => (200, self.show()),
            ("PUT" | "DELETE", _) => {
                if exists {
                    let condition = condition.map(String::as_str).unwrap_or_default();
                    self.asked.push(format!("{method} {condition}"));
                    self.version += u64::from(std::mem::take(&mut self.stranger_comes));
                    if condition != format!("\"{}\"", self.version) {
                        return (412, "{\"error\": \"the page has another version\"}".to_owned());
                    }
                }
                self.version += 1;
                let text = body.split("\"text\":\"").nth(1).and_then(|rest| rest.split('"').next());
                self.text = if method == "PUT" { text.map(str::to_owned) } else { None };
                (200, if method == "PUT" { self.show() } else { String::new() })
            }
            _ => (404, "{}".to_owned()),
        }
    }
}

const DESCRIPTOR: &str = r#"
[provider]
name = "wiki"

[api.rest]
address = { setting = "url" }
message = "error"

[type.page]
list = "rest: GET /pages"
read = "rest: GET /pages/${name}"
key = "name"
identity = "client_id"
create = [ { call = "rest: PUT /pages/${name}", sends = { text = "${text}" } } ]
update = [ { call = "rest: PUT /pages/${name}", sends = { text = "${text}" }, headers = { If-Match = "${etag}" } } ]
delete = [ { call = "rest: DELETE /pages/${name}", headers = { If-Match = "${etag}" } } ]

[type.page.attribute]
name = { type = "string", required = true, on_change = "replace" }
text = { type = "string", required = true }
etag = { type = "string", computed = true, volatile = true, header = "ETag" }
"#;

#[test]
fn a_change_of_an_object_that_changed_meanwhile_is_refused() {
    let (url, page) = small_server::start(Page::answer);
    let spec = |text: &str| {
        format!(
            "[provider.wiki]\ndescriptor = \"./wiki.toml\"\nurl = \"{url}\"\n\n[resource.page.home]\nname = \"home\"\n\
             text = \"{text}\"\n"
        )
    };
    let project = Project::new(&spec("one"));
    project.write("wiki.toml", DESCRIPTOR);
    project.run(&["apply", "--yes"]).expect(0);
    project.run(&["plan", "--detailed-exitcode"]).expect(0);

    project.write("plumb.toml", spec("two"));
    page.lock().expect("a page").stranger_comes = true;
    let said = project.run(&["apply", "--yes"]).expect(3).said();
    assert!(said.contains("changed outside") && said.contains("plan again"), "{said}");
    assert_eq!(page.lock().expect("a page").text.as_deref(), Some("one"), "nothing was done");

    project.run(&["apply", "--yes"]).expect(0);
    let (text, asked) = {
        let page = page.lock().expect("a page");
        (page.text.clone(), page.asked.clone())
    };
    assert_eq!(text.as_deref(), Some("two"));
    assert_eq!(asked, ["PUT \"1\"", "PUT \"2\""]);
    page.lock().expect("a page").stranger_comes = true;
    project.run(&["destroy", "--yes"]).expect(3);
    project.run(&["destroy", "--yes"]).expect(0);
    assert_eq!(page.lock().expect("a page").text, None);
}
