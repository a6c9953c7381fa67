//! An API that refuses a change of an object that changed meanwhile: `If-Match`, and 412.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use crate::harness::Project;

/// The one page that the server has.
#[derive(Default)]
struct Page {
    text: Option<String>,
    version: u64,
    /// True if a stranger changes the page right before the next change that is asked for.
    stranger_comes: bool,
    /// The changes that were asked for, with their `If-Match`.
    asked: Vec<String>,
}

impl Page {
    fn show(&self) -> String {
        let text = self.text.clone().unwrap_or_default();
        format!("{{\"name\": \"home\", \"text\": \"{text}\"}}")
    }

    /// The status and the body of an answer.
    fn answer(&mut self, method: &str, path: &str, condition: &str, body: &str) -> (u16, String) {
        let exists = self.text.is_some();
        match (method, path) {
            ("GET", "/pages") if exists => (200, format!("[{}]", self.show())),
            ("GET", "/pages") => (200, "[]".to_owned()),
            ("GET", _) if exists => (200, self.show()),
            ("PUT" | "DELETE", _) => {
                if exists {
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

fn serve(stream: TcpStream, page: &Mutex<Page>) -> Option<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).ok().filter(|count| *count > 0)?;
        let (method, rest) = line.split_once(' ')?;
        let path = rest.split(' ').next()?.to_owned();
        let (mut length, mut condition) = (0, String::new());
        loop {
            let mut header = String::new();
            stream.read_line(&mut header).ok()?;
            let Some((name, value)) = header.trim_end().split_once(": ") else { break };
            match name.to_lowercase().as_str() {
                "content-length" => length = value.parse().ok()?,
                "if-match" => value.clone_into(&mut condition),
                _ => {}
            }
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).ok()?;
        let mut page = page.lock().ok()?;
        let body = String::from_utf8_lossy(&body).into_owned();
        let (status, body) = page.answer(method, &path, &condition, &body);
        let (version, length) = (page.version, body.len());
        drop(page);
        let head = format!(
            "HTTP/1.1 {status} X\r\nETag: \"{version}\"\r\nContent-Length: {length}\r\n\r\n"
        );
        stream.get_mut().write_all(format!("{head}{body}").as_bytes()).ok()?;
    }
}

fn start() -> (String, Arc<Mutex<Page>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("its address"));
    let page = Arc::new(Mutex::new(Page::default()));
    let served = page.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let page = served.clone();
            std::thread::spawn(move || serve(stream, &page));
        }
    });
    (address, page)
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
    let (url, page) = start();
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
