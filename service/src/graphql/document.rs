//! What a GraphQL document asks for, read before it is executed: faults and the access log go by
//! the names of its top-level fields.

use juniper::http::GraphQLRequest;
use juniper::parser::parse_document_source;
use juniper::{DefaultScalarValue, Definition, Operation, OperationType, Selection};

use super::Schema;
use crate::faults::Call;

/// How deep fragments inside fragments are followed.
const DEPTH: usize = 8;

/// The call that this request makes. A document that cannot be parsed calls nothing.
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
        collect(&operation.selection_set, &document, DEPTH, &mut call.operations);
    }
    call.list = !call.mutating && call.operations.iter().any(|name| name == "myself");
    call
}

fn collect(
    selections: &[Selection<'_, DefaultScalarValue>],
    document: &[Definition<'_, DefaultScalarValue>],
    depth: usize,
    names: &mut Vec<String>,
) {
    if depth == 0 {
        return;
    }
    for selection in selections {
        match selection {
            Selection::Field(field) => names.push(field.item.name.item.to_owned()),
            Selection::InlineFragment(fragment) => {
                collect(&fragment.item.selection_set, document, depth - 1, names);
            }
            Selection::FragmentSpread(spread) => {
                for definition in document {
                    if let Definition::Fragment(fragment) = definition
                        && fragment.item.name.item == spread.item.name.item
                    {
                        collect(&fragment.item.selection_set, document, depth - 1, names);
                    }
                }
            }
        }
    }
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
    }
}
