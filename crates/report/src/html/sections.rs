//! Parts of a page: each has a heading that can be linked to, and an entry in the table of contents.

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
    pub fn picture(&mut self, title: &str, caption: &str, mut picture: Picture, tables: &[Table]) {
        if self.pictures.iter().any(|other| other.id == picture.id) {
            picture.id += &format!("-{}", self.pictures.len());
        }
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
        let ids = self.ids();
        let parts = || ids.iter().zip(&self.all);
        let body = html! {
            (header)
            nav aria-label="Contents" {
                @for (id, (title, _)) in parts() {
                    a href={ "#" (id) } { (Text(title)) }
                }
            }
            main {
                @for (id, (title, body)) in parts() {
                    section id=(id) {
                        h2 { a href={ "#" (id) } { (Text(title)) } }
                        (body)
                    }
                }
            }
        };
        (body, self.pictures)
    }
}

impl Sections {
    /// An anchor for each part. Parts with equal titles are numbered.
    fn ids(&self) -> Vec<String> {
        let mut ids: Vec<String> = Vec::new();
        for (title, _) in &self.all {
            let slug = slug(title);
            let numbered = (1..).map(|number| match number {
                1 => slug.clone(),
                _ => format!("{slug}-{number}"),
            });
            let mut free = numbered.filter(|id| !ids.contains(id));
            let id = free.next().unwrap_or_default();
            drop(free);
            ids.push(id);
        }
        ids
    }
}

/// A table without its title, which stands above it.
fn drawn(table: &Table) -> Markup {
    html! { div.scroll tabindex="0" role="region" aria-label=(Text(table.title())) { (PreEscaped(table.html())) } }
}
