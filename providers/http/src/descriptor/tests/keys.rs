//! Keys, authentication and headers with mistakes.

use super::{GOOD, said};

#[test]
fn mistakes() {
    let with = |from: &str, to: &str| said(&GOOD.replace(from, to));
    let key = "key = { env = \"ACME_KEY\" }";
    let auth = "auth = { header = \"X-Key\", value = \"${key}\" }";
    let found = [
        with(
            key,
            "key = { env = \"ACME_KEY\" }\nkeys = { user = { env = \"U\", default = \"x\" }, key = { env = \"K\" } }",
        ),
        with(auth, "auth = { basic = \"${user}:${key}\" }"),
        with(auth, "auth = { basic = \"${key}\", header = \"X\" }"),
        with(auth, "auth = [ { header = \"X-Key\" }, { query = \"k\", header = \"X\" } ]"),
        with(auth, "auth = { header = \"X\", value = \"${key\" }"),
        with(auth, "auth = { header = \"Content-Length\" }"),
        with(auth, "headers = { Host = \"x\", X-Org = \"${org}\", X-Line = \"a\\nb\" }"),
        with("identity =", "headers = { Host = \"x\", X-Of = \"${nmae}\" }\nidentity ="),
        with("size = {", "etag = { type = \"string\", header = \"ETag\" }\nsize = {"),
    ];
    insta::assert_snapshot!(found.join("\n--\n"), @r#"
    5:17 a descriptor holds no key [this is read by everyone] -> name an environment variable: key = { env = "…" }
    5:47 `key` cannot be the name of one of `keys` -> names are lower-case letters, digits and underscores, and begin with a letter
    --
    6:6 there is no key `user` -> known are key
    --
    8:8 the authentication does not say where the key goes [exactly one of `header`, `query` and `basic` is wanted] -> write `header = "Authorization"`, `query = "api_key"` or `basic = "${user}:${key}"`
    --
    8:32 the authentication does not say where the key goes [exactly one of `header`, `query` and `basic` is wanted] -> write `header = "Authorization"`, `query = "api_key"` or `basic = "${user}:${key}"`
    --
    8:8 the text cannot be read [a `${` is not closed] -> write it like "Bearer ${key}"
    --
    8:8 the authentication does not say where the key goes [exactly one of `header`, `query` and `basic` is wanted] -> write `header = "Authorization"`, `query = "api_key"` or `basic = "${user}:${key}"`
    --
    6:6 there is no key `org` -> known are key
    8:13 `Host` cannot be the name of a header -> the client sets the length, the host and the connection of a request itself
    8:52 the text cannot be read [it holds a control character] -> write it like "Bearer ${key}"
    --
    10:7 type `thing`: `headers` names the attribute `nmae`, which it lacks -> did you mean `name`?
    13:13 `Host` cannot be the name of a header -> the client sets the length, the host and the connection of a request itself
    --
    22:36 a header of an answer is not given [an answer tells it] -> add `computed = true`; what a call sends stands in the `headers` of its phase
    "#);
}

/// A key that is no secret may stand in a path. An attribute with its name takes precedence, and a secret is
/// refused.
#[test]
fn keys_in_paths() {
    let keys = "key = { env = \"ACME_KEY\" }\nkeys = { org = { env = \"ORG\", public = true }, pin = { env = \"PIN\" }, \
                name = { env = \"NAME\", public = true } }";
    let with = |path: &str| {
        let text = GOOD.replace("key = { env = \"ACME_KEY\" }", keys);
        said(&text.replace("GET /things\"", &format!("GET /{path}\"")))
    };
    assert_eq!(with("orgs/${org}/things?of=${org}"), "");
    for path in ["orgs/${pin}/things", "orgs/${name}/things"] {
        let found = with(path);
        assert!(found.contains("a list cannot depend on an object"), "{path}: {found}");
    }
}
