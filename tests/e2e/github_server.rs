//! A server for an organisation of GitHub, with answers of the published form. Its links have no host, so
//! that they lead through the proxy before it.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::small_server::{Answer, Request};

/// The number of items on a page of a list.
const PAGE: usize = 2;

/// An organisation.
#[derive(Default)]
pub(crate) struct Organisation {
    pub(crate) repositories: Vec<Repository>,
    pub(crate) teams: Vec<Value>,
    /// The members of the only team.
    pub(crate) members: Vec<String>,
    /// The last id that the server gave.
    ids: u64,
    /// The methods and paths of the requests so far.
    pub(crate) log: Vec<String>,
}

/// A repository and the objects in it, by collection and name.
#[derive(Default)]
pub(crate) struct Repository {
    pub(crate) own: Value,
    pub(crate) labels: BTreeMap<String, Value>,
    pub(crate) variables: BTreeMap<String, Value>,
    pub(crate) secrets: BTreeMap<String, Value>,
    pub(crate) protections: BTreeMap<String, Value>,
}

const TIME: &str = "2026-11-25T12:00:00Z";

fn answer(status: u16, body: &Value) -> Answer {
    let mut answer =
        Answer::new(status, if status == 204 { String::new() } else { body.to_string() });
    if status != 204 {
        answer.headers.push("Content-Type: application/json; charset=utf-8".to_owned());
    }
    answer
}

fn refusal(status: u16, code: &str) -> Answer {
    let errors = json!([{"resource": "Thing", "code": code, "field": "name"}]);
    let body = json!({"message": "Validation Failed", "documentation_url": "https://docs.github.com", "errors": errors});
    answer(status, &body)
}

fn missing() -> Answer {
    answer(404, &json!({"message": "Not Found", "documentation_url": "https://docs.github.com"}))
}

/// Returns a page of a list, with a link to the next page.
fn page(request: &Request, items: &[Value], inside: Option<&str>) -> Answer {
    let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
    let number = query.split('&').find_map(|pair| pair.strip_prefix("page="));
    let number: usize = number.and_then(|text| text.parse().ok()).unwrap_or(1);
    let shown: Vec<Value> = items.iter().skip((number - 1) * PAGE).take(PAGE).cloned().collect();
    let body = match inside {
        Some(key) => json!({"total_count": items.len(), key: shown}),
        None => Value::Array(shown),
    };
    let mut answer = answer(200, &body);
    if items.len() > number * PAGE {
        let next = number + 1;
        answer.headers.push(format!("Link: <{path}?per_page={PAGE}&page={next}>; rel=\"next\""));
    }
    answer
}

/// Adds web addresses under these names, as objects of GitHub have them.
fn with_addresses(mut object: Value, names: &[&str]) -> Value {
    for name in names {
        object[name] = "https://api.github.com/x".into();
    }
    object
}

fn merge(object: &mut Value, body: &Value) {
    for (name, value) in body.as_object().expect("an object") {
        object[name] = value.clone();
    }
}

fn user() -> Value {
    let user = json!({"login": "acme", "id": 1, "node_id": "U", "gravatar_id": "", "type": "Organization", "site_admin": false});
    let names = [
        "avatar_url",
        "url",
        "html_url",
        "followers_url",
        "following_url",
        "gists_url",
        "starred_url",
        "subscriptions_url",
        "organizations_url",
        "repos_url",
        "events_url",
        "received_events_url",
    ];
    with_addresses(user, &names)
}

const OF_REPOSITORY: [&str; 44] = [
    "html_url",
    "url",
    "archive_url",
    "assignees_url",
    "blobs_url",
    "branches_url",
    "collaborators_url",
    "comments_url",
    "commits_url",
    "compare_url",
    "contents_url",
    "contributors_url",
    "deployments_url",
    "downloads_url",
    "events_url",
    "forks_url",
    "git_commits_url",
    "git_refs_url",
    "git_tags_url",
    "git_url",
    "issue_comment_url",
    "issue_events_url",
    "issues_url",
    "keys_url",
    "labels_url",
    "languages_url",
    "merges_url",
    "milestones_url",
    "notifications_url",
    "pulls_url",
    "releases_url",
    "ssh_url",
    "stargazers_url",
    "statuses_url",
    "subscribers_url",
    "subscription_url",
    "tags_url",
    "teams_url",
    "trees_url",
    "clone_url",
    "mirror_url",
    "hooks_url",
    "svn_url",
    "homepage",
];

/// Returns a new repository.
fn repository(id: u64, body: &Value) -> Value {
    let mut repository =
        with_addresses(json!({"id": id, "node_id": "R", "owner": user()}), &OF_REPOSITORY);
    merge(
        &mut repository,
        &json!({
            "description": null, "homepage": null, "visibility": "public", "private": false, "fork": false,
            "language": null, "forks_count": 0, "stargazers_count": 0, "watchers_count": 0, "size": 0,
            "default_branch": "main", "open_issues_count": 0, "is_template": false, "topics": [],
            "has_issues": true, "has_projects": true, "has_wiki": true, "has_pages": false,
            "has_discussions": false, "archived": false, "disabled": false, "pushed_at": TIME,
            "created_at": TIME, "updated_at": TIME, "allow_squash_merge": true, "allow_merge_commit": true,
            "allow_rebase_merge": true, "allow_auto_merge": false, "delete_branch_on_merge": false,
            "subscribers_count": 0, "network_count": 0, "forks": 0, "open_issues": 0, "watchers": 0,
            "license": {"key": "other", "name": "Other", "url": null, "spdx_id": "NOASSERTION", "node_id": "L"},
        }),
    );
    change(&mut repository, body);
    repository
}

/// Changes a repository. An empty text removes the value.
fn change(repository: &mut Value, body: &Value) {
    merge(repository, body);
    for name in ["description", "homepage"] {
        if repository[name] == "" {
            repository[name] = Value::Null;
        }
    }
    repository["full_name"] =
        format!("acme/{}", repository["name"].as_str().expect("a name")).into();
    repository["private"] = (repository["visibility"] != "public").into();
}

/// Returns a repository as lists show it: without some of its settings.
fn in_list(repository: &Value) -> Value {
    let mut shown = repository.clone();
    let names = [
        "allow_squash_merge",
        "allow_merge_commit",
        "allow_rebase_merge",
        "allow_auto_merge",
        "delete_branch_on_merge",
    ];
    for name in names {
        shown.as_object_mut().expect("an object").remove(name);
    }
    shown
}

fn team(id: u64, body: &Value) -> Value {
    let organization = json!({
        "login": "acme", "id": 1, "node_id": "O", "description": null, "has_organization_projects": true,
        "has_repository_projects": true, "public_repos": 0, "public_gists": 0, "followers": 0, "following": 0,
        "created_at": TIME, "updated_at": TIME, "archived_at": null, "type": "Organization",
    });
    let names = [
        "url",
        "repos_url",
        "events_url",
        "hooks_url",
        "issues_url",
        "members_url",
        "public_members_url",
        "avatar_url",
        "html_url",
    ];
    let mut team = json!({
        "id": id, "node_id": "T", "description": null, "privacy": "secret", "permission": "pull",
        "notification_setting": "notifications_enabled", "parent": null, "members_count": 0, "repos_count": 0,
        "created_at": TIME, "updated_at": TIME, "type": "organization",
        "organization": with_addresses(organization, &names),
    });
    team = with_addresses(team, &["url", "html_url", "members_url", "repositories_url"]);
    merge(&mut team, body);
    team["slug"] = team["name"].as_str().expect("a name").to_lowercase().replace(' ', "-").into();
    team
}

/// Returns the protection rules of a branch as the API shows them, from the request.
fn protection(body: &Value, teams: &[Value]) -> Value {
    let url = "https://api.github.com/x";
    let mut shown = json!({"url": url});
    shown["enforce_admins"] = json!({"url": url, "enabled": body["enforce_admins"] == true});
    for name in [
        "required_linear_history",
        "allow_force_pushes",
        "allow_deletions",
        "required_conversation_resolution",
    ] {
        shown[name] = json!({"enabled": body[name] == true});
    }
    if let Some(checks) = body["required_status_checks"].as_object() {
        shown["required_status_checks"] = json!({"url": url, "contexts_url": url, "strict": checks["strict"], "contexts": checks["contexts"], "checks": []});
    }
    if let Some(reviews) = body["required_pull_request_reviews"].as_object() {
        shown["required_pull_request_reviews"] = json!(reviews);
        shown["required_pull_request_reviews"]["url"] = url.into();
    }
    if let Some(restrictions) = body["restrictions"].as_object() {
        let slugs = restrictions["teams"].as_array().expect("a list");
        let teams: Vec<&Value> =
            teams.iter().filter(|team| slugs.contains(&team["slug"])).collect();
        shown["restrictions"] = json!({"url": url, "users_url": url, "teams_url": url, "apps_url": url, "users": [], "teams": teams, "apps": []});
    }
    shown
}

impl Organisation {
    fn id(&mut self) -> u64 {
        self.ids += 1;
        self.ids
    }

    pub(crate) fn answer(&mut self, request: &Request) -> Answer {
        self.log.push(format!("{} {}", request.method, request.path));
        let headers = &request.headers;
        if headers.get("authorization").is_none_or(|it| it != "Bearer canary-github-token") {
            return answer(401, &json!({"message": "Bad credentials"}));
        }
        assert_eq!(headers["x-github-api-version"], "2022-11-28");
        let path = request.path.split('?').next().unwrap_or_default().to_owned();
        let parts: Vec<&str> = path.split('/').skip(1).collect();
        let body: Value = serde_json::from_str(&request.body).unwrap_or_default();
        match parts.as_slice() {
            ["orgs", "acme", "repos"] => self.repositories(request, &body),
            ["orgs", "acme", "teams"] => self.teams(request, &body),
            ["orgs", "acme", "teams", slug] => self.team(request, slug, &body),
            ["orgs", "acme", "teams", _, "members" | "memberships", rest @ ..] => {
                self.member(request, rest)
            }
            ["repos", "acme", name, rest @ ..] => self.repository(request, name, rest, &body),
            _ => missing(),
        }
    }

    fn repositories(&mut self, request: &Request, body: &Value) -> Answer {
        if request.method == "GET" {
            let shown: Vec<Value> = self.repositories.iter().map(|it| in_list(&it.own)).collect();
            return page(request, &shown, None);
        }
        if self.repositories.iter().any(|it| it.own["name"] == body["name"]) {
            return refusal(422, "already_exists");
        }
        let own = repository(self.id(), body);
        self.repositories.push(Repository { own: own.clone(), ..Repository::default() });
        answer(201, &own)
    }

    fn teams(&mut self, request: &Request, body: &Value) -> Answer {
        if request.method == "GET" {
            return page(request, &self.teams, None);
        }
        let team = team(self.id(), body);
        self.teams.push(team.clone());
        self.members = vec!["founder".to_owned()];
        answer(201, &team)
    }

    fn member(&mut self, request: &Request, rest: &[&str]) -> Answer {
        let Some(login) = rest.first() else {
            let member = |login: &String| {
                let mut member = user();
                member["login"] = login.as_str().into();
                member
            };
            return page(request, &self.members.iter().map(member).collect::<Vec<_>>(), None);
        };
        self.members.retain(|own| own != login);
        if request.method == "DELETE" {
            return answer(204, &Value::Null);
        }
        self.members.push((*login).to_owned());
        let url = "https://api.github.com/x";
        answer(200, &json!({"url": url, "role": "member", "state": "active"}))
    }

    fn team(&mut self, request: &Request, slug: &str, body: &Value) -> Answer {
        let Some(at) = self.teams.iter().position(|team| team["slug"] == slug) else {
            return missing();
        };
        match request.method.as_str() {
            "DELETE" => {
                self.teams.remove(at);
                return answer(204, &Value::Null);
            }
            "PATCH" => merge(&mut self.teams[at], body),
            _ => {}
        }
        answer(200, &self.teams[at])
    }

    fn repository(&mut self, request: &Request, name: &str, rest: &[&str], body: &Value) -> Answer {
        let Some(at) = self.repositories.iter().position(|it| it.own["name"] == name) else {
            return missing();
        };
        let id = self.id();
        let teams = self.teams.clone();
        let repository = &mut self.repositories[at];
        match (request.method.as_str(), rest) {
            ("DELETE", []) => {
                self.repositories.remove(at);
                answer(204, &Value::Null)
            }
            (method, []) => {
                if method == "PATCH" {
                    change(&mut repository.own, body);
                }
                answer(200, &repository.own)
            }
            ("PUT", ["topics"]) => {
                repository.own["topics"] = body["names"].clone();
                answer(200, body)
            }
            (_, ["labels", rest @ ..]) => repository.label(id, request, rest, body),
            (_, ["actions", "variables", rest @ ..]) => repository.variable(request, rest, body),
            (_, ["actions", "secrets", rest @ ..]) => repository.secret(request, rest, body),
            (_, ["branches"]) => {
                let branches = repository.protections.keys();
                let commit = json!({"sha": "0", "url": "https://api.github.com/x"});
                let branch = |name| json!({"name": name, "commit": commit, "protected": true});
                page(request, &branches.map(branch).collect::<Vec<_>>(), None)
            }
            (method, ["branches", branch, "protection"]) => {
                let rules = &mut repository.protections;
                match method {
                    "PUT" => drop(rules.insert((*branch).to_owned(), protection(body, &teams))),
                    "DELETE" => {
                        let gone = rules.remove(*branch);
                        return gone.map_or_else(missing, |_| answer(204, &Value::Null));
                    }
                    _ => {}
                }
                rules.get(*branch).map_or_else(missing, |rules| answer(200, rules))
            }
            _ => missing(),
        }
    }
}

impl Repository {
    fn label(&mut self, id: u64, request: &Request, rest: &[&str], body: &Value) -> Answer {
        match (request.method.as_str(), rest) {
            ("GET", []) => page(request, &self.labels.values().cloned().collect::<Vec<_>>(), None),
            ("POST", _) => {
                let name = body["name"].as_str().expect("a name");
                if self.labels.contains_key(name) {
                    return refusal(422, "already_exists");
                }
                let mut label = json!({"id": id, "node_id": "L", "url": "https://api.github.com/x", "description": null, "default": false});
                merge(&mut label, body);
                self.labels.insert(name.to_owned(), label.clone());
                answer(201, &label)
            }
            (method, [name]) => {
                let Some(mut label) = self.labels.remove(*name) else { return missing() };
                if method == "DELETE" {
                    return answer(204, &Value::Null);
                }
                for key in ["color", "description"] {
                    if let Some(value) = body.get(key).filter(|_| method == "PATCH") {
                        label[key] = if value == "" { Value::Null } else { value.clone() };
                    }
                }
                if let Some(name) = body.get("new_name") {
                    label["name"] = name.clone();
                }
                self.labels
                    .insert(label["name"].as_str().expect("a name").to_owned(), label.clone());
                answer(200, &label)
            }
            _ => missing(),
        }
    }

    fn variable(&mut self, request: &Request, rest: &[&str], body: &Value) -> Answer {
        match (request.method.as_str(), rest) {
            ("GET", []) => page(
                request,
                &self.variables.values().cloned().collect::<Vec<_>>(),
                Some("variables"),
            ),
            ("GET", [name]) => self.variables.get(*name).map_or_else(missing, |it| answer(200, it)),
            ("POST", _) => {
                let name = body["name"].as_str().expect("a name").to_owned();
                let mut variable = json!({"created_at": TIME, "updated_at": TIME});
                merge(&mut variable, body);
                self.variables.insert(name, variable);
                answer(201, &json!({}))
            }
            ("PATCH", [name]) => match self.variables.get_mut(*name) {
                Some(variable) => {
                    merge(variable, body);
                    answer(204, &Value::Null)
                }
                None => missing(),
            },
            (_, [name]) => {
                self.variables.remove(*name).map_or_else(missing, |_| answer(204, &Value::Null))
            }
            _ => missing(),
        }
    }

    fn secret(&mut self, request: &Request, rest: &[&str], body: &Value) -> Answer {
        let shown =
            |(name, _): (&String, _)| json!({"name": name, "created_at": TIME, "updated_at": TIME});
        match (request.method.as_str(), rest) {
            ("GET", []) => {
                page(request, &self.secrets.iter().map(shown).collect::<Vec<_>>(), Some("secrets"))
            }
            ("GET", [name]) => {
                self.secrets.get_key_value(*name).map_or_else(missing, |it| answer(200, &shown(it)))
            }
            ("PUT", [name]) => match self.secrets.insert((*name).to_owned(), body.clone()) {
                Some(_) => answer(204, &Value::Null),
                None => answer(201, &json!({})),
            },
            (_, [name]) => {
                self.secrets.remove(*name).map_or_else(missing, |_| answer(204, &Value::Null))
            }
            _ => missing(),
        }
    }
}
