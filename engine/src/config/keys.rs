//! The tables of a spec and their keys, as data: the parser refuses other keys, and editors offer and explain
//! these.

/// A table at the top of a spec.
#[derive(Clone, Copy, Debug)]
pub struct TableForm {
    /// Its word, such as `variable`.
    pub name: &'static str,
    /// Its header.
    pub header: Header,
    /// One such table as messages call it, such as "a variable".
    pub one: &'static str,
    /// The keys that have the same meaning in all tables of this form.
    pub keys: &'static [Key],
    /// True if the table may have other keys, too: attributes, inputs, settings, or names that the user
    /// chooses.
    pub is_open: bool,
    /// Its meaning, in a sentence.
    pub description: &'static str,
}

/// The header of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Header {
    /// `[plumb]`.
    Single,
    /// `[variable.NAME]`.
    Named,
    /// `[resource.TYPE.NAME]`.
    Typed,
    /// `[[import]]`.
    List,
}

/// A key of a table.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// The key.
    pub name: &'static str,
    /// The form of its value.
    pub form: Form,
    /// True if the table must have it.
    pub is_required: bool,
    /// Its meaning, in a sentence.
    pub description: &'static str,
}

/// The form of the value of a key.
#[derive(Clone, Copy, Debug)]
pub enum Form {
    /// A plain text, without expressions.
    Text,
    /// The name of a type, such as `list(string)`.
    TypeName,
    /// `true` or `false`, without expressions.
    Flag,
    /// A value without expressions.
    Constant,
    /// A list of values without expressions.
    Constants,
    /// The plain address of a resource or a module, such as "value.a".
    Address,
    /// A list of such addresses.
    Addresses,
    /// A list of plain names of attributes of the resource.
    Attributes,
    /// The plain name of a provider instance.
    Provider,
    /// Plain texts by name.
    TextMap,
    /// A value; its texts may hold expressions.
    Value,
    /// A text that may hold expressions.
    Message,
    /// `true`, `false`, or an expression in `${…}`.
    Boolean,
    /// An expression, with or without `${…}` around it.
    Condition,
    /// A list of references, each in `${…}`.
    References,
    /// A table.
    Table(&'static [Key]),
    /// A table, or a list of tables.
    Tables(&'static [Key]),
}

const fn key(name: &'static str, form: Form, description: &'static str) -> Key {
    Key { name, form, is_required: false, description }
}

const fn required(name: &'static str, form: Form, description: &'static str) -> Key {
    Key { name, form, is_required: true, description }
}

const DESCRIPTION: Key = key("description", Form::Text, "A text for people.");
const SENSITIVE: Key = key(
    "sensitive",
    Form::Flag,
    "True if the value is a secret: never shown, kept as a fingerprint.",
);
const DEPENDS_ON: Key = key(
    "depends_on",
    Form::Addresses,
    "The addresses that must be ready first, such as \"value.a\".",
);
const FOR_EACH: Key = key(
    "for_each",
    Form::Value,
    "One instance for each entry of a table, or for each text of a list: `each.key`, `each.value`.",
);

const PROVIDER: Key = key(
    "provider",
    Form::Provider,
    "The provider instance, where several have the type; of one with `for_each`, with a key.",
);

/// The keys of `[plumb]`.
const PLUMB: &[Key] = &[
    DESCRIPTION,
    key("name", Form::Text, "A name of the spec, for people."),
    key(
        "required_version",
        Form::Text,
        "The versions of Plumb that the spec is written for, such as \">=0.1, <0.3\".",
    ),
];

/// The keys of a condition with its message.
pub const CONDITION: &[Key] = &[
    required("condition", Form::Condition, "The condition that must hold."),
    required("message", Form::Message, "The message when it does not hold."),
];

const VARIABLE: &[Key] = &[
    key("allowed", Form::Constants, "The allowed values."),
    key("default", Form::Constant, "The value if none is given. Without one, a value is required."),
    DESCRIPTION,
    key("nullable", Form::Flag, "False: null, as a JSON file can give it, stands for the default."),
    SENSITIVE,
    key(
        "type",
        Form::TypeName,
        "The type, such as \"string\" or \"list(integer)\"; else that of the default.",
    ),
    key("validation", Form::Tables(CONDITION), "The conditions that the value must meet."),
];

/// The keys of a resource that are not attributes.
pub const RESOURCE: &[Key] = &[
    DEPENDS_ON,
    FOR_EACH,
    key("lifecycle", Form::Table(LIFECYCLE), "The rules for changes of the object."),
    PROVIDER,
];

/// The keys of a data block that are not attributes.
pub const DATA: &[Key] = &[
    DEPENDS_ON,
    FOR_EACH,
    key("lifecycle", Form::Table(DATA_LIFECYCLE), "The conditions of the look-up."),
    PROVIDER,
];

/// The keys of `lifecycle` of a data block.
pub const DATA_LIFECYCLE: &[Key] = &[
    key(
        "postcondition",
        Form::Tables(CONDITION),
        "The conditions that what is found must meet, as `self`.",
    ),
    key("precondition", Form::Tables(CONDITION), "The conditions that must hold for the look-up."),
];

/// The keys of `lifecycle`.
pub const LIFECYCLE: &[Key] = &[
    key("allow_data_loss", Form::Boolean, "True: a replace that loses data is allowed."),
    key(
        "allow_unknown",
        Form::Attributes,
        "The attributes that may have values outside their list.",
    ),
    key("create_before_destroy", Form::Boolean, "Overrides the order of a replace."),
    key("enabled", Form::Boolean, "False: the resource is not wanted; others see it as null."),
    key("ignore_changes", Form::Attributes, "The attributes whose differences are ignored."),
    key(
        "postcondition",
        Form::Tables(CONDITION),
        "The conditions that the object must meet, as `self`, once it is made or changed.",
    ),
    key(
        "precondition",
        Form::Tables(CONDITION),
        "The conditions that must hold before the object is made or changed.",
    ),
    key(
        "prevent_destroy",
        Form::Boolean,
        "True: a plan that deletes or replaces the object is refused.",
    ),
    key(
        "replace_triggered_by",
        Form::References,
        "References: a change of one replaces the object afterwards.",
    ),
    key(
        "retain",
        Form::Boolean,
        "True: instead of a delete, the object is forgotten and left alone.",
    ),
];

const OUTPUT: &[Key] = &[
    DESCRIPTION,
    key(
        "precondition",
        Form::Tables(CONDITION),
        "The conditions that must hold for the value to be kept.",
    ),
    SENSITIVE,
    required("value", Form::Value, "The value: any expression."),
];

const POLICY: &[Key] = &[
    required("assert", Form::Condition, "The condition that a plan, or each change, must meet."),
    DESCRIPTION,
    key(
        "for",
        Form::Text,
        "The type whose changes are looked at one by one, or \"all\". Without it, the whole plan is.",
    ),
    key("message", Form::Message, "The message when it does not hold."),
    key("severity", Form::Text, "\"deny\" refuses the plan, \"warn\" only says so."),
];

const IMPORT: &[Key] = &[
    key("for_each", Form::Value, "One import for each entry: `each.key`, `each.value`."),
    key("id", Form::Message, "The id of the object, as the API shows it."),
    key("name", Form::Message, "The name of the object, in place of its id."),
    required(
        "to",
        Form::Address,
        "The instance of a resource in this spec that the object becomes.",
    ),
];

const MOVED: &[Key] = &[
    required(
        "from",
        Form::Text,
        "The address of a resource, an instance or a module as the state has it; `*` is any name, `[*]` any key.",
    ),
    required("to", Form::Address, "The address that it has in the spec, with the same `*`."),
];

const REMOVED: &[Key] = &[
    key("destroy", Form::Flag, "True: the objects are deleted. Else they stay where they are."),
    required("from", Form::Text, "The address of what the spec no longer has, as in a move."),
];

const TIMEOUT: Key = key("timeout", Form::Message, "The longest wait, such as \"30s\".");

const CHECK: &[Key] = &[
    required("assert", Form::Condition, "The condition that must hold; it sees `job` and `http`."),
    DESCRIPTION,
    key(
        "http",
        Form::Table(&[TIMEOUT, required("url", Form::Message, "The http or https address.")]),
        "A page to fetch: `http.status`, `http.body`, `http.json`.",
    ),
    key(
        "job",
        Form::Table(&[
            required("endpoint", Form::Message, "The id of the endpoint."),
            required("input", Form::Value, "The input of the job."),
            TIMEOUT,
        ]),
        "A job to run: `job.status`, `job.output`, `job.error`.",
    ),
    key("message", Form::Message, "The message when it does not hold."),
];

/// The keys of a module that are not inputs.
pub const MODULE: &[Key] = &[
    DEPENDS_ON,
    key("enabled", Form::Boolean, "False: nothing of the module is wanted; its outputs are null."),
    key("folder", Form::Text, "The folder in the repository."),
    FOR_EACH,
    key("providers", Form::TextMap, "The providers here that names in the module stand for."),
    key("revision", Form::Text, "The tag, branch or commit of the repository."),
    required(
        "source",
        Form::Text,
        "A folder, `./…` or `../…`, or the address of a git repository.",
    ),
];

/// The keys of a provider that are no settings of its descriptor: they name the descriptor, and give it instances.
pub const PROVIDER_SOURCE: &[Key] = &[
    key("descriptor", Form::Message, "An older word for a `source` that is a path."),
    key("file", Form::Text, "The path of the descriptor in the repository."),
    key(
        "for_each",
        Form::Value,
        "A table or a list of texts: an instance of the provider for each.",
    ),
    key(
        "revision",
        Form::Text,
        "The tag, branch or commit of the repository that holds the descriptor.",
    ),
    key(
        "source",
        Form::Message,
        "A descriptor: \"catalog:rabbitmq\", which comes with Plumb, a path, or the address of a git repository.",
    ),
];

/// All tables, by name.
pub const TABLES: &[TableForm] = &[
    TableForm {
        name: "check",
        header: Header::Named,
        one: "a check",
        keys: CHECK,
        is_open: false,
        description: "A check: an assertion over what is live, run after an apply and by `plumb check`.",
    },
    TableForm {
        name: "data",
        header: Header::Typed,
        one: "a data block",
        keys: DATA,
        is_open: true,
        description: "A look-up of the one object that others made and that has these attributes.",
    },
    TableForm {
        name: "import",
        header: Header::List,
        one: "an import",
        keys: IMPORT,
        is_open: false,
        description: "An existing object to take into the state.",
    },
    TableForm {
        name: "local",
        header: Header::Single,
        one: "`[local]`",
        keys: &[],
        is_open: true,
        description: "Values with names, for `local.NAME`.",
    },
    TableForm {
        name: "module",
        header: Header::Named,
        one: "a module",
        keys: MODULE,
        is_open: true,
        description: "A call of a module: a folder of spec files. Other keys are its inputs.",
    },
    TableForm {
        name: "moved",
        header: Header::List,
        one: "a move",
        keys: MOVED,
        is_open: false,
        description: "Objects that get another address and stay as they are.",
    },
    TableForm {
        name: "output",
        header: Header::Named,
        one: "an output",
        keys: OUTPUT,
        is_open: false,
        description: "A result: kept in the state, printed by `plumb output`.",
    },
    TableForm {
        name: "plumb",
        header: Header::Single,
        one: "`[plumb]`",
        keys: PLUMB,
        is_open: false,
        description: "The spec itself.",
    },
    TableForm {
        name: "policy",
        header: Header::Named,
        one: "a policy",
        keys: POLICY,
        is_open: false,
        description: "A policy: a condition on each change, or on the whole plan.",
    },
    TableForm {
        name: "provider",
        header: Header::Named,
        one: "a provider",
        keys: PROVIDER_SOURCE,
        is_open: true,
        description: "The settings of a provider: where its API is, or the descriptor that it is made of.",
    },
    TableForm {
        name: "removed",
        header: Header::List,
        one: "a removal",
        keys: REMOVED,
        is_open: false,
        description: "Objects that the spec no longer has, and what becomes of them.",
    },
    TableForm {
        name: "resource",
        header: Header::Typed,
        one: "a resource",
        keys: RESOURCE,
        is_open: true,
        description: "A resource of a type, by name.",
    },
    TableForm {
        name: "state",
        header: Header::Single,
        one: "`[state]`",
        keys: &[],
        is_open: true,
        description: "The place of the state. Without it, the state lives in files in `.plumb/`.",
    },
    TableForm {
        name: "variable",
        header: Header::Named,
        one: "a variable",
        keys: VARIABLE,
        is_open: false,
        description: "An input of the spec, for `var.NAME`.",
    },
];

/// Returns the table with that name.
pub fn table(name: &str) -> Option<&'static TableForm> {
    TABLES.iter().find(|table| table.name == name)
}

/// The names of all tables.
pub fn tables() -> impl Iterator<Item = &'static str> + Clone {
    TABLES.iter().map(|table| table.name)
}

/// The names of keys.
pub fn names(keys: &'static [Key]) -> Vec<&'static str> {
    keys.iter().map(|key| key.name).collect()
}

/// Returns the keys of the table at a path such as `resource`, type, name, `lifecycle`; none if the path
/// leads to no known table.
pub fn keys_at(path: &[&str]) -> Option<&'static [Key]> {
    let form = table(path.first()?)?;
    let header = match form.header {
        Header::Single | Header::List => 1,
        Header::Named => 2,
        Header::Typed => 3,
    };
    let mut inner = path.get(header..)?.iter();
    inner.try_fold(form.keys, |keys, name| match keys.iter().find(|key| key.name == *name)?.form {
        Form::Table(keys) | Form::Tables(keys) => Some(keys),
        _ => None,
    })
}

/// Returns the key with that name in the table at a path.
pub fn key_at(path: &[&str], name: &str) -> Option<&'static Key> {
    keys_at(path)?.iter().find(|key| key.name == name)
}

/// Returns true if `name` is one of the keys.
pub fn has(keys: &[Key], name: &str) -> bool {
    keys.iter().any(|key| key.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_and_keys_are_sorted_and_described() {
        let tables: Vec<&str> = TABLES.iter().map(|table| table.name).collect();
        assert!(tables.is_sorted(), "{tables:?}");
        let mut open: Vec<&[Key]> = TABLES.iter().map(|table| table.keys).collect();
        while let Some(keys) = open.pop() {
            assert!(names(keys).is_sorted(), "{:?}", names(keys));
            for key in keys {
                assert!(key.description.ends_with('.'), "{}", key.name);
                if let Form::Table(keys) | Form::Tables(keys) = key.form {
                    open.push(keys);
                }
            }
        }
        let key = |path: &[&str], name| key_at(path, name).map(|key| key.name);
        assert_eq!(key(&["resource", "t", "n", "lifecycle"], "retain"), Some("retain"));
        assert_eq!(key(&["variable", "n", "validation"], "message"), Some("message"));
        assert_eq!(key(&["resource", "t"], "retain"), None);
        assert!(has(MODULE, "source") && !has(MODULE, "size"));
    }
}
