//! Pictures: their data, and their place in the page. `pictures.js` draws them.

use maud::{Markup, html};
use results::Verdict;
use serde::Serialize;

use super::text::{Text, slug};

/// One picture, with one or several views that the reader can choose.
#[derive(Debug, Serialize)]
pub struct Picture {
    /// The id of the element that it is drawn into.
    pub id: String,
    pub views: Vec<View>,
}

#[derive(Debug, Serialize)]
pub struct View {
    pub name: String,
    #[serde(flatten)]
    pub drawing: Drawing,
}

#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Drawing {
    /// A number for each pair of a row and a column, as a color.
    Heat {
        /// The meaning of the columns.
        along: String,
        columns: Vec<String>,
        rows: Vec<Row>,
        unit: Unit,
        /// Columns where something begins.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        marks: Vec<Mark>,
    },
    /// Bars, each below its parent.
    Flame { bars: Vec<Bar> },
    /// Waiting times before and after, one below the other.
    Pairs { rows: Vec<Pair> },
    /// Circles, and lines between them.
    Graph { nodes: Vec<Node>, edges: Vec<Edge> },
}

/// The unit of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    Ns,
    Misses,
    Bytes,
    Pages,
}

#[derive(Clone, Debug, Serialize)]
pub struct Mark {
    pub column: usize,
    pub name: String,
}

#[derive(Debug, Serialize)]
pub struct Row {
    pub name: String,
    /// Further remarks.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub about: String,
    pub values: Vec<u64>,
}

#[derive(Debug, Serialize)]
pub struct Pair {
    pub name: String,
    pub before: u64,
    pub after: u64,
    /// `better`, `worse` or `same`.
    pub verdict: Verdict,
}

#[derive(Debug, Serialize)]
pub struct Bar {
    pub name: String,
    pub depth: u32,
    /// Its begin, and its length.
    pub from: u64,
    pub ns: u64,
}

#[derive(Debug, Serialize)]
pub struct Node {
    pub name: String,
    pub about: String,
    pub bytes: u64,
}

#[derive(Debug, Serialize)]
pub struct Edge {
    /// Indices of the nodes.
    pub from: usize,
    pub to: usize,
    pub misses: u64,
    /// The data that both touch.
    pub about: String,
}

impl Picture {
    pub fn new(title: &str, views: Vec<View>) -> Picture {
        Picture {
            id: format!("picture-{}", slug(title)),
            views,
        }
    }

    /// The frame of the drawing: tabs for its views, the drawing, and a text for readers without graphics.
    pub fn place(&self, caption: &str) -> Markup {
        html! {
            figure id=(self.id) {
                @if self.views.len() > 1 {
                    div.tabs role="tablist" aria-label="Views" {
                        @for (at, view) in self.views.iter().enumerate() {
                            button type="button" role="tab" aria-selected=(at == 0) tabindex=(if at == 0 { "0" } else { "-1" }) aria-controls={ (self.id) "-drawing" } { (Text(&view.name)) }
                        }
                    }
                }
                div.zoom hidden {
                    button type="button" data-zoom="in" { "Zoom in" }
                    button type="button" data-zoom="out" { "Zoom out" }
                    button type="button" data-zoom="left" { "Left" }
                    button type="button" data-zoom="right" { "Right" }
                    button type="button" data-zoom="all" { "Show all" }
                }
                div.drawing id={ (self.id) "-drawing" } role=(if self.views.len() > 1 { "tabpanel" } else { "img" }) aria-label=(Text(caption)) {
                    noscript { "Pictures are drawn by the page's script; the tables below have the numbers." }
                }
                figcaption { (Text(caption)) }
            }
        }
    }
}
