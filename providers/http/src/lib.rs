//! A provider written as TOML: any HTTP API, REST or GraphQL.
