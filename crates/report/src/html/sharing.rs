//! The threads and the data that they share, as a graph.

use maud::html;
use results::{SharingAdvice, SharingEdge, bytes, count};

use super::pictures::{Drawing, Edge, Node, Picture, View};
use super::sections::Sections;
use super::text::{Text, prose};

/// How many lines are drawn: those with most misses.
const EDGES: usize = 200;
/// How many data structures a line names.
const NAMES: usize = 3;

pub const TITLE: &str = "Threads that share data";

pub fn section(sections: &mut Sections, of: &SharingAdvice) {
    let graph = &of.graph;
    if graph.edges.is_empty() {
        return;
    }
    let at = |thread: u32| graph.threads.iter().position(|of| of.thread == thread);
    let node = |thread: &results::SharingThread| Node {
        name: match thread.name.is_empty() {
            true => format!("{}: {}", thread.thread, thread.number),
            false => format!("{}: {} ({})", thread.thread, thread.name, thread.number),
        },
        about: format!(
            "{} touched, {} of it with others",
            bytes(thread.bytes),
            bytes(thread.shared)
        ),
        bytes: thread.bytes,
    };
    let edge = |edge: &SharingEdge| {
        Some(Edge {
            from: at(edge.a)?,
            to: at(edge.b)?,
            misses: edge.misses,
            about: format!(
                "{} in common, {} misses: {}",
                bytes(edge.bytes),
                count(edge.misses),
                names(edge)
            ),
        })
    };
    let drawing = Drawing::Graph {
        nodes: graph.threads.iter().map(node).collect(),
        edges: graph.edges.iter().take(EDGES).filter_map(edge).collect(),
    };
    let picture = Picture::new(
        TITLE,
        vec![View {
            name: TITLE.to_string(),
            drawing,
        }],
    );
    let caption = "Threads, and lines between those that touch the same data: the thicker, the more misses come of it.";
    let body = html! {
        (picture.place(caption))
        @if graph.edges.len() > EDGES { p.faint { (graph.edges.len() - EDGES) " pairs with fewer misses are not drawn." } }
        @if !of.verdict.is_empty() { p { (prose(&of.verdict)) } }
        @if let Some(written) = &of.written { p.faint { "The placement was written to " (Text(written)) "." } }
    };
    sections.add(TITLE, body);
    sections.pictures.push(picture);
}

fn names(edge: &SharingEdge) -> String {
    let names = edge
        .structures
        .iter()
        .take(NAMES)
        .map(|structure| results::short(&structure.name));
    names.collect::<Vec<_>>().join(", ")
}
