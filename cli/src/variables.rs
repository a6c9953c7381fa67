//! The values that are given for variables: by the environment, by files of the folder, by named files, and
//! by options. Each of these overrides the one before.
//!
//! The engine checks that the spec has these variables and that the values fit.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use engine::address::Name;
use engine::config::resolve::{Given, GivenPlaces};
use engine::config::variables::environment_name;
use engine::plan::file::Inputs;
use engine::stored::from_json;
use engine::value::{Attributes, Value};

use crate::args::SpecArgs;
use crate::environment::all_readable;
use crate::error::CommandError;

/// The largest variables file, in bytes.
const FILE_MAX: u64 = 1024 * 1024;

/// The values given for variables, and the places that give them.
#[derive(Default)]
pub(crate) struct GivenVariables {
    /// The values.
    pub(crate) values: BTreeMap<Name, Given>,
    /// The places, for messages.
    pub(crate) places: GivenPlaces,
}

impl GivenVariables {
    fn insert(&mut self, name: Name, value: Given, place: String) {
        self.places.insert(name.clone(), place);
        self.values.insert(name, value);
    }
}

/// Looks up a variable of the environment.
pub(crate) type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Returns the values for variables. From the environment, only the `declared` variables are read: others may
/// be meant for another spec. Paths of files are relative to `base`.
pub(crate) fn given<'a>(
    declared: impl Iterator<Item = &'a Name>,
    args: &SpecArgs,
    (folder, base): (&Path, &Path),
    environment: Environment<'_>,
) -> Result<GivenVariables, CommandError> {
    let mut given = GivenVariables::default();
    for name in declared {
        let names = [environment_name(name), format!("PLUMB_VAR_{name}")];
        let found = names.into_iter().find_map(|of| environment(&of).map(|value| (of, value)));
        if let Some((of, value)) = found {
            given.insert(name.clone(), Given::Text(value), of);
        }
    }
    all_readable()?;
    let named = args.variable_files.iter().map(|path| (base.join(path), path.clone()));
    let named = named.map(|(path, shown)| (path, shown.display().to_string()));
    for (path, place) in automatic(folder)?.into_iter().chain(named) {
        for (name, value) in read_file(&path)? {
            given.insert(name, Given::Value(value), place.clone());
        }
    }
    for (name, value) in &args.variables {
        given.insert(name.as_str().into(), Given::Text(value.clone()), "--var".to_owned());
    }
    Ok(given)
}

/// The endings of the variables files in the folder of a spec that are read without being named.
const AUTOMATIC: [&str; 2] = [".auto.vars.toml", ".auto.vars.json"];

/// Returns the variables files in a folder that are read without being named, with their names, sorted.
fn automatic(folder: &Path) -> Result<Vec<(PathBuf, String)>, CommandError> {
    let fail = |error: std::io::Error| {
        CommandError::caused(format_args!("cannot list the folder {}", folder.display()), &error)
    };
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(fail)? {
        let path = entry.map_err(fail)?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if AUTOMATIC.iter().any(|ending| name.ends_with(ending)) {
            let name = name.to_owned();
            paths.push((path, name));
        }
    }
    paths.sort();
    Ok(paths)
}

/// Returns the values that variables had when a plan was saved. Secrets must be given again.
pub(crate) fn given_again(
    inputs: &Inputs,
    args: &SpecArgs,
    folders: (&Path, &Path),
    environment: Environment<'_>,
) -> Result<GivenVariables, CommandError> {
    let secrets = &inputs.secrets;
    if let Some((name, _)) = args.variables.iter().find(|(name, _)| !secrets.contains_key(&**name))
    {
        let name = render::safe::text(name);
        let message = format!("the variable `{name}` does not go with this saved plan");
        return Err(CommandError::new(message).help(
            "a saved plan is applied exactly as it is: it takes only its secrets; give other variables to `plumb plan`",
        ));
    }
    let mut given = given(secrets.keys(), args, folders, environment)?;
    given.values.retain(|name, _| secrets.contains_key(name));
    if let Some(name) = secrets.keys().find(|name| !given.values.contains_key(*name)) {
        let message = format!(
            "the plan was made with a value for the sensitive variable `{name}`, which the file does not hold"
        );
        return Err(CommandError::new(message).help(format!(
            "give it again with {} in the environment, or with --var-file FILE",
            environment_name(name)
        )));
    }
    for (name, value) in &inputs.variables {
        let value = value
            .value()
            .map_err(|error| CommandError::caused("the plan file is damaged", &error))?;
        given.insert(name.clone(), Given::Value(value), "the saved plan".to_owned());
    }
    Ok(given)
}

/// Returns the text of a variables file; `None` if it is too large. Keeps the text of a pipe, such as a
/// shell's `<(…)`: a pipe can be read only once, and some commands need its text again.
fn text_of(path: &Path) -> std::io::Result<Option<String>> {
    static PIPED: Mutex<BTreeMap<PathBuf, String>> = Mutex::new(BTreeMap::new());
    if std::fs::metadata(path)?.is_file() {
        return read_bounded(path);
    }
    let mut piped = PIPED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(text) = piped.get(path) {
        return Ok(Some(text.clone()));
    }
    let text = read_bounded(path)?;
    piped.extend(text.clone().map(|text| (path.to_owned(), text)));
    Ok(text)
}

fn read_bounded(path: &Path) -> std::io::Result<Option<String>> {
    let mut text = String::new();
    let read = std::fs::File::open(path)?.take(FILE_MAX + 1).read_to_string(&mut text)?;
    Ok((read as u64 <= FILE_MAX).then_some(text))
}

fn read_file(path: &Path) -> Result<Attributes, CommandError> {
    let shown = path.display();
    let fail = |error: std::io::Error| {
        CommandError::caused(format_args!("cannot read the variables file {shown}"), &error)
    };
    let text = text_of(path).map_err(fail)?.ok_or_else(|| {
        CommandError::new(format!("{shown} is larger than 1 MiB, which no variables file is"))
    })?;
    if path.extension().is_some_and(|extension| extension == "json") {
        return read_json(&text, &shown);
    }
    let table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
        // Only the message is shown: the error's own text quotes the line, which may hold a secret.
        let line = error.span().map_or(1, |span| text[..span.start].lines().count().max(1));
        CommandError::new(format!("{shown}:{line} is not TOML: {}", error.message()))
    })?;
    table
        .into_iter()
        .map(|(name, value)| Ok((Name::from(name.as_str()), of_toml(value, &shown)?)))
        .collect()
}

fn read_json(text: &str, shown: &dyn std::fmt::Display) -> Result<Attributes, CommandError> {
    // Only the message is shown: it has no part of the text.
    let json: serde_json::Value = serde_json::from_str(text).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        CommandError::new(format!("{shown}:{line} is not JSON: see column {column}"))
    })?;
    match from_json(&json) {
        Value::Map(entries) => Ok((*entries).clone()),
        _ => {
            Err(CommandError::new(format!("{shown} is no JSON object: write {{\"name\": value}}")))
        }
    }
}

fn of_toml(value: toml::Value, place: &dyn std::fmt::Display) -> Result<Value, CommandError> {
    Ok(match value {
        toml::Value::String(text) => Value::string(text),
        toml::Value::Integer(number) => Value::Integer(number),
        toml::Value::Float(number) if number.is_finite() => Value::Float(number),
        toml::Value::Boolean(value) => Value::Bool(value),
        toml::Value::Array(items) => Value::list(
            items.into_iter().map(|item| of_toml(item, place)).collect::<Result<_, _>>()?,
        ),
        toml::Value::Table(table) => Value::map(
            table
                .into_iter()
                .map(|(name, item)| Ok((Name::from(name.as_str()), of_toml(item, place)?)))
                .collect::<Result<_, CommandError>>()?,
        ),
        toml::Value::Datetime(_) | toml::Value::Float(_) => {
            return Err(CommandError::new(format!(
                "{place} holds a date or a number that is not finite: write it as text"
            )));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(name: &str) -> Option<String> {
        let pairs = [("PLUMB_VAR_ENV", "stage"), ("PLUMB_VAR_size", "4"), ("PLUMB_VAR_OTHER", "x")];
        pairs.into_iter().find(|(known, _)| *known == name).map(|(_, value)| value.to_owned())
    }

    #[test]
    fn options_win_over_files_and_files_over_the_environment() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("v.toml"), "env = \"file\"\nmore = [1]\n").unwrap();
        let names = ["env", "size"].map(Name::from);
        let mut args = SpecArgs::default();
        let values = |args: &SpecArgs| {
            let folders = (dir.path(), dir.path());
            let given = given(names.iter(), args, folders, &environment).unwrap();
            given
                .values
                .into_iter()
                .map(|(n, v)| format!("{n}={v:?}"))
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(values(&args), r#"env=Text("stage") size=Text("4")"#);
        args.variable_files = vec!["v.toml".into()];
        assert_eq!(values(&args), r#"env=Value("file") more=Value([1]) size=Text("4")"#);
        args.variables = vec![("env".to_owned(), "option".to_owned())];
        assert_eq!(values(&args), r#"env=Text("option") more=Value([1]) size=Text("4")"#);
    }

    #[test]
    fn files_of_the_folder_are_read_in_order() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
        write("b.auto.vars.json", r#"{"env": "b", "list": [1, {"x": null}]}"#);
        write("a.auto.vars.toml", "env = 'a'\nsize = 1\n");
        write("c.vars.toml", "env = 'c'\n");
        write("d.json", r#"{"size": 2}"#);
        let names = ["env", "size"].map(Name::from);
        let mut args = SpecArgs::default();
        let values = |args: &SpecArgs| {
            let folders = (dir.path(), dir.path());
            let given = given(names.iter(), args, folders, &environment).unwrap();
            given
                .values
                .into_iter()
                .map(|(n, v)| format!("{n}={v:?}"))
                .collect::<Vec<_>>()
                .join(" ")
        };
        let automatic = r#"env=Value("b") list=Value([1, {"x": null}]) size=Value(1)"#;
        assert_eq!(values(&args), automatic);
        args.variable_files = vec!["d.json".into()];
        assert_eq!(values(&args), automatic.replace("Value(1)", "Value(2)"));
        write("d.json", "{\"token\": hunter2}");
        let error = read_file(&dir.path().join("d.json")).unwrap_err();
        assert!(error.message.contains("d.json:1 is not JSON"), "{}", error.message);
        assert!(!error.message.contains("hunter2"));
        write("d.json", "[1]");
        let error = read_file(&dir.path().join("d.json")).unwrap_err();
        assert!(error.message.ends_with("is no JSON object: write {\"name\": value}"));
    }

    #[test]
    fn only_what_is_declared_is_looked_for() {
        let asked = std::cell::RefCell::new(Vec::new());
        let environment = |name: &str| {
            asked.borrow_mut().push(name.to_owned());
            environment(name)
        };
        let names = [Name::from("env")];
        let dir = tempfile::tempdir().unwrap();
        let given =
            given(names.iter(), &SpecArgs::default(), (dir.path(), dir.path()), &environment)
                .unwrap();
        assert_eq!(given.values.len(), 1);
        let asked = asked.into_inner();
        assert!(!asked.is_empty() && asked.iter().all(|name| name.ends_with("ENV")), "{asked:?}");
    }

    #[test]
    fn a_pipe_is_read_once_and_kept() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("v");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let writing = pipe.clone();
        let writer = std::thread::spawn(move || std::fs::write(writing, "env = \"piped\"\n"));
        for _ in 0..2 {
            assert_eq!(read_file(&pipe).unwrap()["env"], Value::string("piped"));
        }
        writer.join().unwrap().unwrap();
        std::fs::write(dir.path().join("large"), vec![b'#'; 1024 * 1024 + 1]).unwrap();
        let large = read_file(&dir.path().join("large")).unwrap_err();
        assert!(large.message.contains("larger than 1 MiB"), "{}", large.message);
    }

    #[test]
    fn a_broken_file_shows_no_secret() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("v.toml"), "a = 1\ntoken = \"hunter2\n").unwrap();
        let args = SpecArgs { variable_files: vec!["v.toml".into()], ..SpecArgs::default() };
        let error = given([].iter(), &args, (dir.path(), dir.path()), &environment).err().unwrap();
        assert!(error.message.contains("v.toml:2 is not TOML"), "{}", error.message);
        assert!(!error.message.contains("hunter2"));
    }
}
