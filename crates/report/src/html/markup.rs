//! Building HTML so that nothing from a result can become markup.

use std::fmt::{self, Display, Write};

use results::{CLASSES, count, short};

use crate::escape::escape;

/// A piece of HTML under construction.
#[derive(Default)]
pub struct Html(String);

impl Html {
    /// An element with text in it.
    pub fn text(&mut self, tag: &str, class: &str, text: &str) {
        let name = if class == "name" { short(text) } else { String::new() };
        let text = if class == "name" { &name } else { text };
        self.raw(format_args!("<{tag}{}>{}</{tag}>\n", attribute(class), escape(text)));
    }

    /// A paragraph in which what is between backticks is code.
    pub fn prose(&mut self, tag: &str, text: &str) {
        let parts = text.split('`').enumerate();
        let parts = parts.map(|(at, part)| match at % 2 {
            0 => escape(part),
            _ => format!("<code>{}</code>", escape(part)),
        });
        let text: String = parts.collect();
        self.raw(format_args!("<{tag}>{text}</{tag}>\n"));
    }

    /// An element with other elements in it.
    pub fn inside(&mut self, tag: &str, class: &str, fill: impl FnOnce(&mut Html)) {
        self.raw(format_args!("<{tag}{}>\n", attribute(class)));
        fill(self);
        self.raw(format_args!("</{tag}>\n"));
    }

    /// A table: titles (those that begin with `#` are of numbers), and rows of ready cells.
    pub fn table(&mut self, titles: &[&str], rows: impl FnOnce(&mut Html)) {
        self.inside("div", "scroll", |html| {
            html.inside("table", "", |html| {
                html.inside("thead", "", |html| {
                    html.inside("tr", "", |html| {
                        for title in titles {
                            match title.strip_prefix('#') {
                                Some(title) => html.text("th", "number", title),
                                None => html.text("th", "", title),
                            }
                        }
                    });
                });
                html.inside("tbody", "", rows);
            });
        });
    }

    pub fn number(&mut self, text: &str) {
        self.text("td", if text == "0" { "number none" } else { "number" }, text);
    }

    /// A count; a dash where it is not known.
    pub fn maybe(&mut self, value: Option<u64>) {
        match value {
            Some(value) => self.number(&count(value)),
            None => self.text("td", "number none", "–"),
        }
    }

    /// A bar of colored parts; the fractions are of its whole width.
    pub fn bar<'a>(&mut self, parts: impl IntoIterator<Item = (&'a str, f64, String)>) {
        self.inside("div", "bar", |html| {
            for (class, fraction, title) in parts {
                html.raw(format_args!(
                    "<span class=\"{class}\" style=\"width:{:.2}%\" title=\"{}\"></span>\n",
                    fraction.clamp(0.0, 1.0) * 100.0,
                    escape(&title)
                ));
            }
        });
    }

    /// Which color stands for which class of misses.
    pub fn legend(&mut self, classes: impl IntoIterator<Item = &'static str>) {
        self.inside("p", "legend", |html| {
            for class in classes {
                html.raw(format_args!(
                    "<span><i class=\"{}\"></i>{}</span>\n",
                    class_of(class),
                    escape(class)
                ));
            }
        });
    }

    fn raw(&mut self, text: fmt::Arguments) {
        // Writing to a string does not fail.
        let _ = self.0.write_fmt(text);
    }
}

impl Display for Html {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The style of a class of misses: `true sharing` is `true-sharing`.
pub fn class_of(class: &str) -> &'static str {
    const STYLES: [&str; 5] = ["cold", "capacity", "conflict", "true-sharing", "false-sharing"];
    let at = CLASSES.iter().position(|name| *name == class);
    at.map_or("waiting", |at| STYLES[at])
}

fn attribute(class: &str) -> String {
    if class.is_empty() {
        return String::new();
    }
    format!(" class=\"{class}\"")
}
