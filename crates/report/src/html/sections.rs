//! Parts of a page: each has a heading that can be linked to, and a place in the list of contents.

use maud::{Markup, PreEscaped, html};

use super::pictures::Picture;
use super::text::{Text, slug};
use crate::table::Table;

/// The parts of a page, in their order, and the pictures in them.
#[derive(Default)]
pub struct Sections {
    all: Vec<(String, Markup)>,
    pub pictures: Vec<Picture>,
}

impl Sections {
    pub fn add(&mut self, title: &str, body: Markup) {
        self.all.push((title.to_string(), body));
    }

    /// A picture, with the tables that have its numbers.
    pub fn picture(&mut self, title: &str, caption: &str, picture: Picture, tables: &[Table]) {
        let body = html! {
            (picture.place(caption))
            @for table in tables {
                details {
                    summary { (Text(table.title())) }
                    (drawn(table))
                }
            }
        };
        self.add(title, body);
        self.pictures.push(picture);
    }

    /// Tables under their titles.
    pub fn tables(&mut self, tables: &[Table]) {
        for table in tables {
            match self.all.last_mut().filter(|_| table.is_continued()) {
                Some((_, body)) => body.0 += &drawn(table).into_string(),
                None => self.add(table.title(), drawn(table)),
            }
        }
    }

    /// The page: its header, the list of contents, the parts.
    pub fn page(self, header: &Markup) -> (Markup, Vec<Picture>) {
        let body = html! {
            (header)
            nav aria-label="Contents" {
                @for (title, _) in &self.all {
                    a href={ "#" (slug(title)) } { (Text(title)) }
                }
            }
            main {
                @for (title, body) in &self.all {
                    section id=(slug(title)) {
                        h2 { a href={ "#" (slug(title)) } { (Text(title)) } }
                        (body)
                    }
                }
            }
        };
        (body, self.pictures)
    }
}

/// A table without its title, which stands above it.
fn drawn(table: &Table) -> Markup {
    html! { div.scroll tabindex="0" role="region" aria-label=(Text(table.title())) { (PreEscaped(table.html())) } }
}
