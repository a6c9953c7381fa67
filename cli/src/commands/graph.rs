//! `plumb graph`: shows the order of the blocks of the spec.

use std::collections::HashMap;
use std::path::Path;

use engine::address::Block;
use render::graph::{Node, dot, mermaid, svg, text};

use crate::args::{Graph, GraphFormat, SpecArgs};
use crate::error::{CommandError, Status};
use crate::folder::Folder;
use crate::output::Output;
use crate::resolved;
use crate::stored_state;

pub(crate) fn run(base: &Path, args: &Graph, output: &Output) -> Result<Status, CommandError> {
    let folder = Folder::new(base, args.folder.folder.as_deref())?;
    let spec = SpecArgs { unset: true, ..args.spec.clone() };
    let resolved = resolved::read(&folder, base, &spec, &stored_state::no_state())?;
    if resolved.diagnostics.has_errors() {
        output.diagnostics(&resolved.diagnostics, &resolved.sources);
        return Ok(Status::Failed);
    }
    let graph = &resolved.graph;
    let positions: HashMap<&Block, usize> =
        graph.order().enumerate().map(|(position, block)| (block, position)).collect();
    let node = |block: &Block| {
        let after = graph.dependencies(block).into_iter();
        let after = after.filter_map(|block| positions.get(block).copied());
        Node { address: block.to_string(), after: after.collect() }
    };
    let nodes: Vec<Node> = graph.order().map(node).collect();
    output.data(&match args.format {
        GraphFormat::Text => text(&nodes),
        GraphFormat::Dot => dot(&nodes),
        GraphFormat::Mermaid => mermaid(&nodes),
        GraphFormat::Svg => svg(&nodes),
    });
    Ok(Status::Done)
}
