//! The reading of a GraphQL document before it is executed. Faults and the access log need the
//! names of its top-level fields. Documents that the library cannot execute without a panic are
//! found here too.

use std::collections::BTreeMap;

use juniper::http::GraphQLRequest;
use juniper::parser::parse_document_source;
use juniper::{DefaultScalarValue, Definition, Operation, OperationType, Selection};

use super::Schema;
use crate::faults::Call;

/// Returns the call that a request makes. A document that cannot be parsed has no operations.
pub(super) fn call(request: &GraphQLRequest, schema: &Schema) -> Call {
    let mut call = Call {
        operations: Vec::new(),
        literal: "POST /graphql".to_owned(),
        mutating: false,
        list: false,
        internal: false,
    };
    let parsed = parse_document_source::<DefaultScalarValue>(&request.query, &schema.schema);
    let Ok(document) = parsed else { return call };
    let operations = document.iter().filter_map(|definition| match definition {
        Definition::Operation(operation) => Some(&operation.item),
        Definition::Fragment(_) => None,
    });
    let wanted = request.operation_name.as_deref();
    let chosen = |operation: &&Operation<'_, _>| {
        wanted.is_none() || operation.name.map(|name| name.item) == wanted
    };
    if let Some(operation) = operations.into_iter().find(chosen) {
        call.mutating = operation.operation_type == OperationType::Mutation;
        call.operations = top_level(&operation.selection_set, &document);
    }
    call.list = !call.mutating && call.operations.iter().any(|name| name == "myself");
    call
}

/// Returns true if a document contains an operation that is not a query, even if the request
/// chooses another operation. A document that cannot be parsed does nothing, so this returns false.
pub(super) fn has_mutation(request: &GraphQLRequest, schema: &Schema) -> bool {
    let parsed = parse_document_source::<DefaultScalarValue>(&request.query, &schema.schema);
    parsed.is_ok_and(|document| {
        document.iter().any(|definition| match definition {
            Definition::Operation(operation) => {
                operation.item.operation_type != OperationType::Query
            }
            Definition::Fragment(_) => false,
        })
    })
}

/// Returns the type of a variable that the schema does not have, if there is one. The library
/// panics on such a variable with a default value: it looks up the type before it has checked that
/// the type exists.
pub(super) fn unknown_type(request: &GraphQLRequest, schema: &Schema) -> Option<String> {
    let parsed = parse_document_source::<DefaultScalarValue>(&request.query, &schema.schema);
    let document = parsed.ok()?;
    let declared = document.iter().filter_map(|definition| match definition {
        Definition::Operation(operation) => operation.item.variables_definition.as_ref(),
        Definition::Fragment(_) => None,
    });
    let mut types = declared
        .flat_map(|variables| variables.item.iter())
        .map(|(_, variable)| variable.var_type.item.innermost_name());
    let unknown = types.find(|name| schema.schema.concrete_type_by_name(name).is_none());
    unknown.map(str::to_owned)
}

/// Returns the names of the fields of a selection, including those of its fragments, in the order
/// of the text.
///
/// Each fragment is followed only once, because it adds the same fields each time. The document is
/// not validated yet, so a fragment may contain itself, many times. For the same reason nothing
/// here is recursive.
fn top_level<'a>(
    selections: &'a [Selection<'a, DefaultScalarValue>],
    document: &'a [Definition<'a, DefaultScalarValue>],
) -> Vec<String> {
    let mut fragments = fragments(document);
    let (mut names, mut open) = (Vec::new(), vec![selections.iter()]);
    while let Some(selections) = open.last_mut() {
        match selections.next() {
            None => drop(open.pop()),
            Some(Selection::Field(field)) => names.push(field.item.name.item.to_owned()),
            Some(Selection::InlineFragment(inline)) => open.push(inline.item.selection_set.iter()),
            Some(Selection::FragmentSpread(spread)) => {
                let fragment = fragments.remove(spread.item.name.item);
                open.extend(fragment.map(|fragment| fragment.iter()));
            }
        }
    }
    names
}

/// Returns the selection of each fragment of a document, by the fragment's name.
fn fragments<'a>(
    document: &'a [Definition<'a, DefaultScalarValue>],
) -> BTreeMap<&'a str, &'a [Selection<'a, DefaultScalarValue>]> {
    let fragments = document.iter().filter_map(|definition| match definition {
        Definition::Fragment(fragment) => {
            Some((fragment.item.name.item, &*fragment.item.selection_set))
        }
        Definition::Operation(_) => None,
    });
    fragments.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_go_by_their_top_level_fields() {
        let check = |query: &str, name: Option<&str>, expected: &[&str], mutating: bool| {
            let request = GraphQLRequest::new(query.to_owned(), name.map(str::to_owned), None);
            let call = call(&request, &super::super::SCHEMA);
            assert_eq!(call.operations, expected, "{query}");
            assert_eq!(call.mutating, mutating, "{query}");
        };
        check("{ myself { id } }", None, &["myself"], false);
        check("mutation { a: deleteEndpoint(id: \"x\") }", None, &["deleteEndpoint"], true);
        let two = "query q { myself { id } } mutation m { ...f } \
                   fragment f on Mutation { deleteEndpoint(id: \"x\") }";
        check(two, Some("m"), &["deleteEndpoint"], true);
        check(two, Some("q"), &["myself"], false);
        check("{ myself {", None, &[], false);
        let nested = "{ a: myself { id } ...f ... on Query { gpuTypes { id } } ...f } \
                      fragment f on Query { ... on Query { ...g } } \
                      fragment g on Query { podTemplates { id } }";
        check(nested, None, &["myself", "podTemplates", "gpuTypes"], false);
    }

    #[test]
    fn fragments_that_spread_themselves_end() {
        let cycle =
            format!("{{ ...a }} fragment a on Query {{ myself {{ id }} {} }}", "...b ".repeat(60))
                + &format!("fragment b on Query {{ {} }}", "...a ...b ".repeat(60));
        let request = GraphQLRequest::new(cycle, None, None);
        assert_eq!(call(&request, &super::super::SCHEMA).operations, ["myself"]);
    }
}
