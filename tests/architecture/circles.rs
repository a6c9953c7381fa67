//! Tests that the `use` lines of a crate form no circles between its files.
//!
//! An arrow leads from the file with the `use` line to the file that defines the named item. `pub use` makes
//! no arrow: it re-exports. A `use` of a re-exported name makes an arrow to the defining file, through any
//! number of re-exports. So a parent module that only declares and re-exports its children is never part of a
//! circle. A parent that defines something which its children use must use nothing of theirs. Code for tests
//! is left out, as are paths in the code itself.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

/// A group of files that may use one another, with the reason.
struct Exception {
    folder: &'static str,
    files: &'static [&'static str],
    reason: &'static str,
}

const EXCEPTIONS: &[Exception] = &[
    Exception {
        folder: "engine/src",
        files: &[
            "config/backends.rs",
            "config/checker.rs",
            "config/imports.rs",
            "config/lifecycle.rs",
            "config/locals.rs",
            "config/outputs.rs",
            "config/resolve.rs",
            "config/resource.rs",
            "config/settings.rs",
            "config/variables.rs",
        ],
        reason: "a resolver is recursive: blocks hold expressions, which name blocks",
    },
    Exception {
        folder: "engine/src",
        files: &["digest.rs", "expression/mod.rs", "value.rs"],
        reason: "an unknown value holds the expression that it will be known by",
    },
    Exception {
        folder: "engine/src",
        files: &[
            "expression/evaluate.rs",
            "expression/evaluate/attempts.rs",
            "expression/evaluate/below.rs",
            "expression/evaluate/budget.rs",
            "expression/evaluate/operators.rs",
            "expression/evaluate/part.rs",
        ],
        reason: "an evaluator is recursive",
    },
    Exception {
        folder: "apply/src",
        files: &["checks.rs", "checks/unwanted.rs"],
        reason: "the scope of a check asks itself whether an instance is wanted",
    },
    Exception {
        folder: "apply/src",
        files: &[
            "run/id_reuse.rs",
            "run/mod.rs",
            "run/permit.rs",
            "run/report.rs",
            "run/secrets.rs",
        ],
        reason: "a run owns its parts, whose files hold the steps of its turn",
    },
];

/// A name that a `use` line imports.
struct Use {
    path: Vec<String>,
    name: String,
    passes_on: bool,
}

/// The files of one crate, by their module paths.
struct Modules {
    files: BTreeMap<Vec<String>, String>,
    uses: BTreeMap<Vec<String>, Vec<Use>>,
}

type Arrows = BTreeMap<String, BTreeSet<String>>;

#[test]
fn no_circle_between_files() {
    let mut found = String::new();
    for folder in ["engine/src", "apply/src", "providers/http/src", "providers/openapi/src"] {
        let arrows = Modules::of(&super::root().join(folder)).arrows();
        for circle in circles(&arrows) {
            let known = EXCEPTIONS.iter().find(|exception| {
                exception.folder == folder
                    && circle.iter().all(|file| exception.files.contains(&file.as_str()))
            });
            if known.is_some_and(|exception| !exception.reason.is_empty()) {
                continue;
            }
            let _ = writeln!(found, "{folder}: a circle of {} files", circle.len());
            for file in &circle {
                let uses: Vec<&str> =
                    arrows[file].intersection(&circle).map(String::as_str).collect();
                let _ = writeln!(found, "  {file} -> {}", uses.join(", "));
            }
        }
    }
    assert!(found.is_empty(), "{found}");
}

impl Modules {
    fn of(folder: &Path) -> Self {
        let mut modules = Self { files: BTreeMap::new(), uses: BTreeMap::new() };
        for path in super::sources(folder) {
            let file = path.strip_prefix(folder).expect("below the folder").with_extension("");
            let mut module: Vec<String> =
                file.iter().map(|part| part.to_string_lossy().into_owned()).collect();
            if matches!(module.last().map(String::as_str), Some("mod" | "lib")) {
                module.pop();
            }
            let name = path.strip_prefix(folder).expect("below the folder");
            modules.files.insert(module.clone(), name.to_string_lossy().into_owned());
            modules.uses.insert(module, uses(&super::code(&path)));
        }
        modules
    }

    fn arrows(&self) -> Arrows {
        let mut arrows = Arrows::new();
        for (module, uses) in &self.uses {
            let own = arrows.entry(self.files[module].clone()).or_default();
            for item in uses.iter().filter(|item| !item.passes_on) {
                let Some(path) = self.absolute(module, &item.path) else { continue };
                let targets = self.defining(&path, 0);
                own.extend(targets.into_iter().filter(|file| *file != self.files[module]));
            }
        }
        arrows
    }

    /// Returns the path from the root of the crate; `None` if it leads to another crate.
    fn absolute(&self, module: &[String], path: &[String]) -> Option<Vec<String>> {
        let mut base = module.to_vec();
        let mut rest = path;
        match path.first().map(String::as_str)? {
            "crate" => {
                base.clear();
                rest = &path[1..];
            }
            "self" => rest = &path[1..],
            "super" => {
                while rest.first().is_some_and(|part| part == "super") {
                    base.pop();
                    rest = &rest[1..];
                }
            }
            first => {
                base.push(first.to_owned());
                let is_child = self.files.contains_key(&base);
                base.pop();
                if !is_child {
                    return None;
                }
            }
        }
        base.extend_from_slice(rest);
        Some(base)
    }

    /// Returns the files that define the item of a path from the root.
    fn defining(&self, path: &[String], depth: usize) -> BTreeSet<String> {
        let length = (0..=path.len()).rev().find(|end| self.files.contains_key(&path[..*end]));
        let module = &path[..length.unwrap_or(0)];
        let own = || BTreeSet::from([self.files[module].clone()]);
        let Some(name) = path.get(module.len()) else { return own() };
        let passed_on = self.uses[module].iter().filter(|item| item.passes_on);
        let mut found = BTreeSet::new();
        for item in passed_on.filter(|item| item.name == *name && depth < 8) {
            if let Some(mut target) = self.absolute(module, &item.path) {
                target.extend_from_slice(&path[module.len() + 1..]);
                found.extend(self.defining(&target, depth + 1));
            }
        }
        if found.is_empty() { own() } else { found }
    }
}

/// Returns the names that the `use` lines of a file import.
fn uses(code: &str) -> Vec<Use> {
    let mut found = Vec::new();
    let mut lines = code.lines().map(|line| line.split("//").next().unwrap_or("").trim());
    while let Some(line) = lines.next() {
        let (passes_on, rest) = match line.find("use ") {
            Some(0) => (false, &line[4..]),
            Some(at) if line.starts_with("pub") && !line[..at].contains(['{', '=', '"']) => {
                (true, &line[at + 4..])
            }
            _ => continue,
        };
        let mut text = rest.to_owned();
        while !text.contains(';') {
            let Some(more) = lines.next() else { break };
            text.push_str(more);
        }
        let tree = text.split(';').next().unwrap_or("");
        expand(&[], tree.trim(), passes_on, &mut found);
    }
    found
}

/// Adds one path for each name of a tree such as `a::{b, c::{self, d as e}}`.
fn expand(before: &[String], tree: &str, passes_on: bool, found: &mut Vec<Use>) {
    if let Some((head, inner)) = tree.split_once('{') {
        let mut path = before.to_vec();
        path.extend(head.split("::").filter(|part| !part.is_empty()).map(str::to_owned));
        let inner = inner.trim().strip_suffix('}').unwrap_or(inner);
        for part in split(inner) {
            expand(&path, part, passes_on, found);
        }
        return;
    }
    let (path, alias) = tree.split_once(" as ").map_or((tree, None), |(a, b)| (a, Some(b.trim())));
    let mut parts = before.to_vec();
    parts.extend(path.split("::").map(|part| part.trim().to_owned()));
    if parts.last().is_some_and(|last| last == "self" || last == "*") && parts.len() > 1 {
        parts.pop();
    }
    let name = alias.map(str::to_owned).or_else(|| parts.last().cloned()).unwrap_or_default();
    found.push(Use { path: parts, name, passes_on });
}

/// Splits a text at the commas outside of braces.
fn split(text: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0, 0);
    for (at, letter) in text.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(text[start..].trim());
    parts.into_iter().filter(|part| !part.is_empty()).collect()
}

/// Returns the groups of more than one file in which each leads to all others.
fn circles(arrows: &Arrows) -> Vec<BTreeSet<String>> {
    let reach: BTreeMap<&String, BTreeSet<&String>> =
        arrows.keys().map(|file| (file, reachable(arrows, file))).collect();
    let mut circles: Vec<BTreeSet<String>> = Vec::new();
    for file in arrows.keys() {
        if circles.iter().any(|circle| circle.contains(file)) {
            continue;
        }
        let together = arrows.keys().filter(|other| {
            *other == file || reach[file].contains(other) && reach[*other].contains(file)
        });
        let circle: BTreeSet<String> = together.cloned().collect();
        if circle.len() > 1 {
            circles.push(circle);
        }
    }
    circles
}

fn reachable<'a>(arrows: &'a Arrows, from: &'a String) -> BTreeSet<&'a String> {
    let (mut reached, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(file) = open.pop() {
        for next in arrows.get(file).into_iter().flatten() {
            if reached.insert(next) {
                open.push(next);
            }
        }
    }
    reached
}

#[test]
fn use_lines_are_read_in_all_their_forms() {
    let code = "use crate::a::B;\npub(crate) use self::c::{D, e::{self, F as G}};\nuse super::{\n    \
                h::I, // said why\n    j,\n};\npub use k::*;\n";
    let read: Vec<String> = uses(code)
        .iter()
        .map(|item| format!("{} {} {}", item.path.join("::"), item.name, item.passes_on))
        .collect();
    let expected = [
        "crate::a::B B false",
        "self::c::D D true",
        "self::c::e e true",
        "self::c::e::F G true",
        "super::h::I I false",
        "super::j j false",
        "k k true",
    ];
    assert_eq!(read, expected);
}
