//! Each kind of result's tables as HTML: a parser reads them, and they have the cells that the text has, with exact numbers.

use crate::invented;

use anstream::adapter::strip_str;
use invented::{advice, ordered, outcome, work};
use report::{Cell, Exact, Role, Table, Top, Value};
use results::{Advice, Outcome};
use roxmltree::{Document, Node};
use serde_json::json;

/// An element's text, as a reader sees it.
fn text(node: Node) -> String {
    node.descendants()
        .filter_map(|node| node.text().filter(|_| node.is_text()))
        .collect()
}

fn inside<'a, 'b>(node: Node<'a, 'b>, tag: &str) -> Vec<Node<'a, 'b>> {
    node.descendants().filter(|node| node.has_tag_name(tag)).collect()
}

/// The number that an element has exactly.
fn exact(node: Node) -> Option<f64> {
    node.attribute("data-value").map(|value| value.parse().unwrap())
}

fn real(exact: Exact) -> f64 {
    match exact {
        Exact::Whole(value) => value as f64,
        Exact::Real(value) => value,
    }
}

/// Both drawings of a table have all that it describes, in its order.
pub fn agree(table: &Table) {
    let html = table.html();
    let parsed = Document::parse(&html).unwrap_or_else(|error| panic!("{error} in\n{html}"));
    let root = parsed.root_element();
    assert!(root.has_tag_name("table"), "{html}");
    assert_eq!(
        inside(root, "caption")
            .iter()
            .map(|node| text(*node))
            .collect::<String>(),
        table.title()
    );
    let titles = inside(inside(root, "thead")[0], "th");
    assert_eq!(titles.len(), table.columns().len(), "{html}");
    for (title, column) in titles.iter().zip(table.columns()) {
        assert!(!column.name().is_empty(), "a column of {} has no name", table.title());
        assert_eq!(
            (text(*title).as_str(), title.attribute("scope")),
            (column.name(), Some("col"))
        );
        assert_eq!(title.attribute("class"), Some(column.role().name()));
        assert_eq!(title.attribute("data-unit").unwrap_or_default(), column.unit());
    }
    let rows = inside(inside(root, "tbody")[0], "tr");
    assert_eq!(rows.len(), table.len(), "{html}");
    // Wide enough that nothing is cut or broken.
    let drawn = strip_str(&table.text(100_000)).to_string();
    let mut lines = drawn.lines().skip(usize::from(table.columns().iter().any(titled)));
    for (row, cells) in rows.iter().zip(table.rows()) {
        let line = lines.next().unwrap();
        let mut rest = line;
        let found: Vec<Node> = row.children().filter(Node::is_element).collect();
        assert_eq!(found.len(), cells.len(), "{html}");
        for ((node, cell), column) in found.iter().zip(&cells).zip(table.columns()) {
            let words = cell.words();
            assert_eq!(text(*node), words.trim(), "{html}");
            assert_eq!(exact(*node), cell.exact().map(real), "{html}");
            assert!(
                node.attribute("class")
                    .unwrap()
                    .split(' ')
                    .any(|class| class == column.role().name())
            );
            if node.has_tag_name("th") {
                assert_eq!((column.role(), node.attribute("scope")), (Role::Label, Some("row")));
            }
            if !cell.is_again() {
                let single = words.split_whitespace().collect::<Vec<_>>().join(" ");
                let at = rest
                    .find(&single)
                    .unwrap_or_else(|| panic!("`{single}` is not in `{line}`"));
                rest = &rest[at + single.len()..];
            }
        }
        assert!(rest.trim().is_empty(), "`{rest}` is in the text alone");
    }
    let notes: Vec<String> = inside(root, "tfoot")
        .iter()
        .flat_map(|foot| inside(*foot, "td"))
        .map(text)
        .collect();
    assert_eq!(notes, table.notes());
    assert_eq!(lines.map(str::trim).collect::<Vec<_>>(), table.notes());
}

/// Whether something stands above a column in the text.
fn titled(column: &report::Column) -> bool {
    let mut table = Table::new("", [column.clone()]);
    table.row([Cell::empty()]);
    table.text(80).lines().count() > 1
}

/// An advice that has every kind of table.
fn whole() -> Advice {
    let mut advice = advice();
    advice.work = ordered(work(900, 1, 16, 3), 0.5, 1_000).work;
    advice.slots = serde_json::from_value(json!({
        "policy": "random+slots", "cache": "L2", "bytes": 1 << 20, "color_bytes": 65536,
        "misses": {"before": 51_500, "after": 20_000},
        "data": [
            {"name": "table", "role": "protect", "slot_bytes": 524_288, "misses": {"before": 30_000, "after": 600}, "cold": 600},
            {"name": "log <1>", "role": "confine", "slot_bytes": 65_536, "misses": {"before": 0, "after": 7}, "cold": 0},
            {"name": "same", "role": "confine", "slot_bytes": 65_536, "misses": {"before": 7, "after": 7}, "cold": 7},
        ],
    }))
    .unwrap();
    advice.cdpc = serde_json::from_value(json!({
        "policy": "cdpc", "wall_ns": 1_000_000, "cache": "L2", "told": {"from": "trace", "loops": 2, "colors": 16, "pages": 9},
        "against": [
            {"policy": "page-coloring", "wall_ns": 1_200_000, "gain": 0.16, "misses": {"before": 9, "after": 4},
             "conflicts": {"before": 5, "after": 0}},
            {"policy": "bin-hopping", "wall_ns": 1_000_001, "gain": 0.000001, "misses": {"before": 4, "after": 4},
             "conflicts": {"before": 0, "after": 0}},
            {"policy": "random", "wall_ns": 300_000, "gain": -2.0, "misses": {"before": 4, "after": 4},
             "conflicts": {"before": 0, "after": 0}},
        ],
        "arrays": [{"name": "a & b", "bytes": 4096, "misses": 12_345, "conflicts": 5}, {"name": "c", "misses": 1, "conflicts": 1}],
    }))
    .unwrap();
    advice
}

/// A run with everything in it that a simulation can split its figures by.
fn split(policy: &str) -> Outcome {
    let mut value = serde_json::to_value(outcome(policy, 500, 1.0e6)).unwrap();
    value["time_ns"]["stall_by_class"] = json!({"on_chip": 5, "cold": null, "capacity": 7, "late_prefetch": 45_000});
    value["bus"] = json!({"data": 8_000_000, "writebacks": 1_000_000, "upgrades": 0, "occupancy_percent": 61.5});
    value["prefetch"] = json!({"issued": 1000, "brought": 900, "useful": 800, "late": 44});
    value["threads"] = json!([{"thread": 0, "number": 71, "name": "a < b", "references": 12_345, "stall_ns": 75,
        "caches": [{"name": "L1", "level": 1, "misses": 3, "cold": 2, "conflict": 1}]}]);
    let page = |number: u64| {
        json!({"process": number % 2, "page": number << 12, "structure": "table", "stall_ns": 25,
               "caches": [{"name": "L1", "level": 1, "misses": 1, "cold": null}]})
    };
    value["pages"] = (0..30).map(page).collect();
    serde_json::from_value(value).unwrap()
}

#[test]
fn an_advice_is_the_same_in_html_and_in_text() {
    for top in [Top::Usual, Top::Rows(1), Top::All] {
        let tables = report::advice_tables(&whole(), top);
        // Time, structures, lines, policies, order, slots, and two of hints.
        assert_eq!(tables.len(), 8);
        tables.iter().for_each(agree);
    }
    assert!(report::advice_tables(&Advice::default(), Top::Usual).is_empty());
}

#[test]
fn runs_are_the_same_in_html_and_in_text() {
    let runs = [split("page-coloring"), split("bin-hopping")];
    for top in [Top::Usual, Top::Rows(3), Top::All] {
        let tables = report::outcome_tables(&runs, top);
        // Time, waiting, misses, bus, prefetches; and of each run threads, structures and pages.
        assert_eq!(tables.len(), 5 + 2 * 3);
        tables.iter().for_each(agree);
    }
    assert!(report::outcome_tables(&[], Top::Usual).is_empty());
    let document = results::Document::Outcomes(runs.to_vec());
    assert_eq!(
        report::tables(&document, Top::All),
        report::outcome_tables(&runs, Top::All)
    );
}

#[test]
fn lists_are_the_same_in_html_and_in_text() {
    let policies = report::policies(policy::registry());
    assert!(policies.len() > policy::registry().len());
    agree(&policies);
    agree(&report::machines([("host", "this machine"), ("a<b", "\"x\" & 'y'")]));
}

#[test]
fn what_was_found_of_a_machine_is_the_same_in_html_and_in_text() {
    let facility = |works: &str, change: Option<&str>| json!({"facility": "huge pages", "works": works, "found": "a < b", "for": "frames", "change": change});
    let doctor = json!({"kernel": "6.8", "facilities": [
        facility("yes", None), facility("partly", Some("x & y")), facility("no", None),
    ]});
    let table = report::doctor(&serde_json::from_value(doctor).unwrap());
    assert_eq!(table.len(), 7);
    agree(&table);
    let status = json!({
        "socket": "/run/<s>", "colors": {"count": 16, "bytes": 65_536, "cache": "L2", "source": "probe"}, "process": 7, "clients": 2, "memory": {"own_bytes": 3_145_728, "limit_bytes": 8_388_608, "left_bytes": 1_048_576},
        "frames": {"at_hand": 256, "by_color": [100, 156], "hits": 3, "misses": 1}, "quota_bytes": 1_048_576,
    });
    let mut status: results::DaemonStatus = serde_json::from_value(status).unwrap();
    let table = report::daemon(&status);
    agree(&table);
    let text = table.facts(11);
    for part in [
        "3.0 MiB of the daemon itself; 1 MiB left of 8 MiB",
        "75.0% arrived",
        "0.4 MiB to 0.6 MiB of a color",
    ] {
        assert!(text.contains(part), "{part} is missing in\n{text}");
    }
    (status.memory.limit_bytes, status.frames.hits, status.frames.misses) = (None, 0, 0);
    let text = report::daemon(&status).facts(11);
    assert!(
        text.contains("its control group has no limit") && text.contains("none looked at yet"),
        "{text}"
    );
}

#[test]
fn numbers_are_exact_and_what_is_not_known_has_none() {
    let run = split("random");
    let html: String = report::outcome_tables(&[run], Top::Usual)
        .iter()
        .map(Table::html)
        .collect();
    for part in [
        "<td class=\"count\" data-value=\"4000000\">4.00 M</td>",
        "<td class=\"time\" data-value=\"8000000\">8.00 ms</td>",
        "<td class=\"share\" data-value=\"0.615\">61.5%</td>",
        "<td class=\"address\" data-value=\"4096\">1:0x1000</td>",
        "<th scope=\"row\" class=\"label name\">random</th>",
    ] {
        assert!(html.contains(part), "{part} is missing in\n{html}");
    }
    let mut table = Table::new(
        "",
        [
            report::Column::new(Role::Time, "time"),
            report::Column::new(Role::Share, "share"),
        ],
    );
    table.row([Cell::unknown(), Cell::share(f64::NAN)]);
    assert!(
        table
            .html()
            .contains("<td class=\"time\">–</td><td class=\"share\">NaN%</td>"),
        "{}",
        table.html()
    );
    assert_eq!(table.row_at(0)[0].value(), &Value::Unknown);
}

#[test]
fn nothing_of_a_result_becomes_markup() {
    let mut advice = whole();
    let evil = "</td><script>alert('x')</script>\u{0}\u{1b}[31m & \"";
    advice.structures[0].name = evil.to_string();
    advice.false_sharing[0].sides[0].field = evil.to_string();
    advice.policies[0].policy = evil.to_string();
    for table in report::advice_tables(&advice, Top::Usual) {
        let html = table.html();
        let parsed = Document::parse(&html).unwrap_or_else(|error| panic!("{error} in\n{html}"));
        assert!(inside(parsed.root_element(), "script").is_empty(), "{html}");
        let cells = inside(parsed.root_element(), "tbody")
            .iter()
            .flat_map(|body| inside(*body, "tr"))
            .count();
        assert_eq!(cells, table.len());
    }
}

#[test]
fn lists_have_the_rows_that_are_asked_for() {
    let run = split("random");
    let pages = |top: Top| {
        let tables = report::outcome_tables(std::slice::from_ref(&run), top);
        let pages = tables.iter().find(|table| table.title().starts_with("Pages")).unwrap();
        (pages.len(), pages.notes().to_vec())
    };
    assert_eq!(pages(Top::Usual), (20, vec![]));
    assert_eq!(pages(Top::Rows(3)), (3, vec!["and 27 more pages".to_string()]));
    assert_eq!(pages(Top::Rows(29)), (29, vec!["and 1 more page".to_string()]));
    assert_eq!(pages(Top::All), (30, vec![]));

    // What an advice names are the first ten; its baseline has all.
    let mut advice = advice();
    let base = advice
        .policies
        .iter_mut()
        .find(|outcome| outcome.policy == "first-touch+random")
        .unwrap();
    let some = base.structures.clone().unwrap()[1].clone();
    base.structures = Some(vec![some; 25]);
    let structures = |top: Top| {
        let tables = report::advice_tables(&advice, top);
        let structures = tables.iter().find(|table| table.title() == "What costs most").unwrap();
        structures.rows().filter(|row| row[0].exact().is_some()).count()
    };
    assert_eq!(
        [Top::Usual, Top::Rows(1), Top::Rows(12), Top::All].map(structures),
        [2, 1, 12, 25]
    );
}
