//! The order of a spec's blocks as text, DOT, Mermaid and SVG.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::safe;

/// The size of a box of the picture, the gaps between boxes, and the margin, in pixels.
const HEIGHT: usize = 28;
const GAP_ACROSS: usize = 70;
const GAP_DOWN: usize = 14;
const MARGIN: usize = 16;
/// The width of a character, and the space beside a text, in pixels.
const CHARACTER: usize = 8;
const PADDING: usize = 12;

/// A block and the blocks that it comes after, by their positions. Each of these positions is lower than that
/// of the block, except in a cycle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// The address of the block.
    pub address: String,
    /// The positions of the blocks that it depends on.
    pub after: Vec<usize>,
}

/// Returns the blocks in order, each with those that it comes after.
pub fn text(nodes: &[Node]) -> String {
    let mut text = String::new();
    for node in nodes {
        let _ = writeln!(text, "{}", safe::text(&node.address));
        for after in &node.after {
            let _ = writeln!(text, "  after {}", safe::text(&nodes[*after].address));
        }
    }
    text
}

/// Returns the graph in the language of Graphviz. Arrows point from a block to those that it depends on.
pub fn dot(nodes: &[Node]) -> String {
    let quoted = |text: &str| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
    let mut text = String::from("digraph plumb {\n  rankdir = RL\n  node [shape = box]\n");
    for node in nodes {
        let _ = writeln!(text, "  {}", quoted(&node.address));
    }
    for node in nodes {
        for after in &node.after {
            let to = quoted(&nodes[*after].address);
            let _ = writeln!(text, "  {} -> {to}", quoted(&node.address));
        }
    }
    text + "}\n"
}

/// Returns the graph in the language of Mermaid, which web pages of repositories show as a picture.
pub fn mermaid(nodes: &[Node]) -> String {
    let mut text = String::from("flowchart RL\n");
    for (position, node) in nodes.iter().enumerate() {
        let _ = writeln!(text, "  n{position}[\"{}\"]", escaped(&node.address));
    }
    for (position, node) in nodes.iter().enumerate() {
        for after in &node.after {
            let _ = writeln!(text, "  n{position} --> n{after}");
        }
    }
    text
}

/// Returns a picture with columns. The column of a block is the length of the longest chain of blocks before
/// it; the first column is on the left.
pub fn svg(nodes: &[Node]) -> String {
    let boxes = Layout::new(nodes);
    let Layout { width, height, .. } = boxes;
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"The order of the blocks\">\n{STYLE}"
    );
    for (position, node) in nodes.iter().enumerate() {
        for after in &node.after {
            boxes.arrow(*after, position, &mut text);
        }
    }
    for (position, node) in nodes.iter().enumerate() {
        boxes.draw(position, &node.address, &mut text);
    }
    text + "</svg>\n"
}

const STYLE: &str = "<style>\n\
    rect { fill: #f4f6fb; stroke: #4a5a8a } text { fill: #1b2240; font: 13px ui-monospace, monospace }\n\
    path { fill: none; stroke: #8a94b5 }\n\
    @media (prefers-color-scheme: dark) { rect { fill: #1d2333; stroke: #8fa3e0 } text { fill: #e8ecfa } }\n\
    </style>\n";

/// A box of the picture: its upper left corner and its width.
#[derive(Clone, Copy)]
struct Place {
    x: usize,
    y: usize,
    width: usize,
}

struct Layout {
    places: Vec<Place>,
    width: usize,
    height: usize,
}

impl Layout {
    fn new(nodes: &[Node]) -> Self {
        let mut columns: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        let mut depths: Vec<usize> = Vec::with_capacity(nodes.len());
        for (position, node) in nodes.iter().enumerate() {
            let before = node.after.iter().filter_map(|after| depths.get(*after));
            let depth = before.max().map_or(0, |depth| depth + 1);
            depths.push(depth);
            columns.entry(depth).or_default().push(position);
        }
        let mut places = vec![Place { x: 0, y: 0, width: 0 }; nodes.len()];
        let (mut x, mut height) = (MARGIN, 0);
        for column in columns.values() {
            let widths = column.iter().map(|node| nodes[*node].address.chars().count());
            let width = widths.max().unwrap_or(0) * CHARACTER + 2 * PADDING;
            for (row, node) in column.iter().enumerate() {
                places[*node] = Place { x, y: MARGIN + row * (HEIGHT + GAP_DOWN), width };
            }
            height = height.max(column.len() * (HEIGHT + GAP_DOWN));
            x += width + GAP_ACROSS;
        }
        let width = (x + MARGIN).saturating_sub(GAP_ACROSS).max(2 * MARGIN);
        Self { places, width, height: (height + 2 * MARGIN).saturating_sub(GAP_DOWN) }
    }

    fn arrow(&self, from: usize, to: usize, text: &mut String) {
        let (from, to) = (self.places[from], self.places[to]);
        let (x1, y1) = (from.x + from.width, from.y + HEIGHT / 2);
        let (x2, y2) = (to.x, to.y + HEIGHT / 2);
        let (c1, c2) = (x1 + GAP_ACROSS / 2, x2.saturating_sub(GAP_ACROSS / 2));
        let _ = writeln!(text, "<path d=\"M{x1} {y1} C{c1} {y1} {c2} {y2} {x2} {y2}\"/>");
    }

    fn draw(&self, position: usize, address: &str, text: &mut String) {
        let Place { x, y, width } = self.places[position];
        let (text_x, text_y) = (x + PADDING, y + HEIGHT / 2 + 5);
        let _ = writeln!(
            text,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{HEIGHT}\" rx=\"4\"/>\
             <text x=\"{text_x}\" y=\"{text_y}\">{}</text>",
            escaped(address)
        );
    }
}

/// Returns a text with the markup characters of Mermaid and SVG escaped.
fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('"', "&quot;");
    text.replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes() -> Vec<Node> {
        let node = |address: &str, after: &[usize]| Node {
            address: address.to_owned(),
            after: after.to_vec(),
        };
        vec![
            node("network_volume.models", &[]),
            node("template.worker", &[]),
            node("module.a[\"x\"].endpoint.chat", &[0, 1]),
        ]
    }

    #[test]
    fn every_form() {
        insta::assert_snapshot!(text(&nodes()), @r#"
        network_volume.models
        template.worker
        module.a["x"].endpoint.chat
          after network_volume.models
          after template.worker
        "#);
        insta::assert_snapshot!(dot(&nodes()), @r#"
        digraph plumb {
          rankdir = RL
          node [shape = box]
          "network_volume.models"
          "template.worker"
          "module.a[\"x\"].endpoint.chat"
          "module.a[\"x\"].endpoint.chat" -> "network_volume.models"
          "module.a[\"x\"].endpoint.chat" -> "template.worker"
        }
        "#);
        insta::assert_snapshot!(mermaid(&nodes()), @r#"
        flowchart RL
          n0["network_volume.models"]
          n1["template.worker"]
          n2["module.a[&quot;x&quot;].endpoint.chat"]
          n2 --> n0
          n2 --> n1
        "#);
    }

    #[test]
    fn a_picture_has_a_box_for_each_block_in_its_column() {
        let picture = svg(&nodes());
        assert_eq!(picture.matches("<rect").count(), 3, "{picture}");
        assert_eq!(picture.matches("<path").count(), 2, "{picture}");
        assert!(picture.contains("a[&quot;x&quot;]"), "{picture}");
        let boxes = Layout::new(&nodes());
        assert_eq!(boxes.places[0].x, boxes.places[1].x);
        assert!(boxes.places[2].x > boxes.places[0].x + boxes.places[0].width);
        assert!(svg(&[]).contains("</svg>"));
    }
}
