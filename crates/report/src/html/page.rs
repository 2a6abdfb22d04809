//! The frame of a page: its permissions (it may load nothing), its style, its pictures' data, and the scripts that draw them.
//!
//! The page contains the plotting library, like everything else: `assets/README.md` says which one and why. Only
//! scripts and styles whose hashes the page names may run, so no content of a result can.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use sha2::{Digest, Sha256};

use super::pictures::Picture;
use super::text::Text;

/// Colors and layout, for light and dark screens and for paper.
const STYLE: &str = include_str!("style.css");
/// The plotting library.
const PLOTS: &str = include_str!("../../assets/echarts.min.js");
/// The script that draws a picture from data.
const DRAW: &str = include_str!("pictures.js");

pub fn page(title: &str, pictures: &[Picture], body: &Markup) -> String {
    let scripts: &[&str] = if pictures.is_empty() { &[] } else { &[PLOTS, DRAW] };
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy(scripts));
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (Text(title)) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                (body)
                @if !pictures.is_empty() {
                    script id="pictures" type="application/json" { (PreEscaped(data(pictures))) }
                }
                @for script in scripts {
                    script { (PreEscaped(script)) }
                }
            }
        }
    };
    page.into_string() + "\n"
}

/// The permissions of the page: only its own styles and scripts.
fn policy(scripts: &[&str]) -> String {
    let sources = |texts: &[&str]| match texts {
        [] => "'none'".to_string(),
        texts => texts.iter().map(|text| hash(text)).collect::<Vec<_>>().join(" "),
    };
    format!(
        "default-src 'none'; base-uri 'none'; form-action 'none'; img-src data:; style-src {}; script-src {}",
        sources(&[STYLE]),
        sources(scripts)
    )
}

fn hash(text: &str) -> String {
    format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text.as_bytes())))
}

/// The pictures' data. No text in it can end its element.
fn data(pictures: &[Picture]) -> String {
    let data = serde_json::to_string(pictures).unwrap_or_else(|_| "[]".to_string());
    data.replace('<', "\\u003c")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_that_of_the_standard() {
        // Content Security Policy Level 3, section 7.1.
        let expected = "'sha256-qznLcsROx4GACP2dm0UCKCzCG+HiZ1guq6ZZDob/Tng='";
        assert_eq!(hash("alert('Hello, world.');"), expected);
    }

    #[test]
    fn scripts_end_where_they_end() {
        for script in [PLOTS, DRAW] {
            assert!(!script.contains("</script") && !script.contains("<!--"));
        }
        assert!(!STYLE.contains("</style"));
    }
}
