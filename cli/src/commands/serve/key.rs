//! `plumb serve key`: keys with fewer rights than the key of the account. The command works on the data
//! folder, if the service runs or not.

use std::path::Path;

use render::{moment, safe};
use serde_json::json;
use service::{Interface, KeyError, KeyRecord, Rights};

use super::data_folder;
use crate::args::{KeyCommand, KeyCreate};
use crate::error::{CommandError, Status, chain};
use crate::output::Output;

pub(super) fn run(
    base: &Path,
    command: &KeyCommand,
    output: &Output,
) -> Result<Status, CommandError> {
    match command {
        KeyCommand::Create(args) => {
            let data = data_folder(base, &args.service)?;
            let key = service::create_key(&data, &args.name, rights(args)).map_err(failed)?;
            output.data(&format!("{key}\n"));
            output.talk("store the key now: it is not shown again\n");
        }
        KeyCommand::List(args) => {
            let keys = service::list_keys(&data_folder(base, &args.service)?).map_err(failed)?;
            output.data(&if args.json {
                render::json::pretty(&keys_json(&keys))
            } else {
                table(&keys)
            });
            if keys.is_empty() {
                output.talk("there are no keys beside the key of the account\n");
            }
        }
        KeyCommand::Revoke(args) => {
            service::revoke_key(&data_folder(base, &args.service)?, &args.name).map_err(failed)?;
            output.talk(&format!("key `{}` is revoked\n", args.name));
        }
    }
    Ok(Status::Done)
}

fn rights(args: &KeyCreate) -> Rights {
    let interface = args.only.as_deref().map(|name| match name {
        "rest" => Interface::Rest,
        "graphql" => Interface::Graphql,
        _ => Interface::Jobs,
    });
    Rights { read_only: args.read_only, interface, endpoint: args.endpoint.clone() }
}

fn failed(error: KeyError) -> CommandError {
    let help = match &error {
        KeyError::Taken(_) => Some("choose another name, or revoke that key first"),
        KeyError::Unknown(_) => Some("`plumb serve key list` shows the keys"),
        _ => None,
    };
    let failed = match error {
        KeyError::Strange(strange) => strange.into(),
        error => CommandError::new(chain(&error)),
    };
    match help {
        Some(help) => failed.help(help),
        None => failed,
    }
}

fn table(keys: &[KeyRecord]) -> String {
    let width = |text: fn(&KeyRecord) -> String| {
        keys.iter().map(|key| text(key).len()).max().unwrap_or_default()
    };
    let (names, rights) = (width(|key| key.name.clone()), width(|key| key.rights.to_string()));
    let line = |key: &KeyRecord| {
        let made = moment::utc(u64::try_from(key.created_at).unwrap_or_default());
        let text = format!("{:names$}  {:rights$}  {made}", key.name, key.rights.to_string());
        format!("{}\n", safe::text(&text))
    };
    keys.iter().map(line).collect()
}

fn keys_json(keys: &[KeyRecord]) -> serde_json::Value {
    let shown = keys.iter().map(|key| {
        json!({
            "name": key.name,
            "read_only": key.rights.read_only,
            "only": key.rights.interface,
            "endpoint": key.rights.endpoint,
            "created_at_ms": key.created_at,
        })
    });
    shown.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_shows_names_and_rights_in_columns() {
        let data = tempfile::tempdir().unwrap();
        let one = Rights { endpoint: Some("ab12".to_owned()), ..Rights::default() };
        service::create_key(data.path(), "app", one).unwrap();
        let reader =
            Rights { read_only: true, interface: Some(Interface::Rest), ..Rights::default() };
        service::create_key(data.path(), "dashboard", reader).unwrap();
        let keys = service::list_keys(data.path()).unwrap();
        let shown = table(&keys);
        let lines: Vec<_> = shown.lines().collect();
        assert!(lines[0].starts_with("app        jobs of endpoint ab12 only  20"), "{shown}");
        assert!(lines[1].starts_with("dashboard  read-only, REST only        20"), "{shown}");
        let json = keys_json(&keys);
        assert_eq!((&json[0]["endpoint"], &json[1]["only"]), (&json!("ab12"), &json!("rest")));
        assert!(json[0].get("digest").is_none());
    }
}
