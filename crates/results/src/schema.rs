//! The JSON schema of results, and the page of the book that it makes.

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::run::Run;
use crate::{
    Advice, Comparison, DaemonStatus, Doctor, ExplainedHints, Imported, LiveFollowing, LiveHomes, LiveRegions, Outcome,
    PageMap, PlacedRun, Recorded, SCHEMA, Truth,
};

/// The JSON that verbs write: a JSON schema with every type under `$defs`.
pub fn schema() -> Value {
    let mut generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let any = [
        generator.subschema_for::<Advice>(),
        generator.subschema_for::<Outcome>(),
        generator.subschema_for::<Comparison>(),
        generator.subschema_for::<ExplainedHints>(),
        generator.subschema_for::<PageMap>(),
        generator.subschema_for::<Run>(),
        generator.subschema_for::<Recorded>(),
        generator.subschema_for::<Imported>(),
        generator.subschema_for::<DaemonStatus>(),
        generator.subschema_for::<Doctor>(),
        generator.subschema_for::<LiveFollowing>(),
        generator.subschema_for::<LiveHomes>(),
        generator.subschema_for::<LiveRegions>(),
        generator.subschema_for::<PlacedRun>(),
        generator.subschema_for::<Truth>(),
    ];
    let about = json!({
        "type": "object",
        "properties": {
            "schema": {"type": "string", "description": "The version of this schema.", "pattern": format!("^{}\\.[0-9]+$", SCHEMA.major)},
            "tool": {"type": "string", "description": "The tool that wrote the result, and its version."},
        },
        "required": ["schema", "tool"],
    });
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": format!("Results of domicile, schema {SCHEMA}"),
        "description": "One object: an advice, one policy's outcome of a simulation, a comparison, or what another verb reports.",
        "allOf": [about],
        "anyOf": any,
        "$defs": generator.take_definitions(true),
    })
}

/// The same for people: each type with its fields.
pub fn page() -> String {
    let schema = schema();
    let mut text = String::from(HEAD);
    let empty = Map::new();
    let definitions = schema["$defs"].as_object().unwrap_or(&empty);
    for (name, definition) in definitions {
        text += &format!("\n## {name}\n\n{}\n", described(definition));
        let Some(fields) = definition["properties"].as_object() else {
            continue;
        };
        text += "\n| field | is | |\n| --- | --- | --- |\n";
        let required = definition["required"].as_array();
        for (field, of) in fields {
            let always = required.is_some_and(|names| names.iter().any(|name| name == field));
            let kind = kind(of);
            let kind = if always { kind } else { format!("{kind}; may be absent") };
            text += &format!("| `{field}` | {kind} | {} |\n", described(of));
        }
    }
    text
}

const HEAD: &str = "\
# Results, field by field

<!-- Made by `cargo xtask generate` from the types in crates/results. -->

`domicile simulate --json` prints one object for each policy, an [Outcome](#outcome), one a line. `domicile advise --json`,
and the file that `advise` writes, are one object, an [Advice](#advice). One object each are what other verbs print or write:

| by | is |
| --- | --- |
| `domicile run --json` | [Run](#run); [LiveHomes](#livehomes) under a policy that moves pages between nodes; [LiveFollowing](#livefollowing) under `regions` |
| `domicile daemon --homes --json` | [LiveHomes](#livehomes) |
| `domicile daemon --regions --json` | [LiveRegions](#liveregions) |
| `domicile run --placement FILE --json` | [PlacedRun](#placedrun) |
| `domicile compare --json`, `domicile report A B --json` | [Comparison](#comparison) |
| `domicile simulate --explain-hints FILE` | [ExplainedHints](#explainedhints) |
| `domicile simulate --page-map FILE` | [PageMap](#pagemap) |
| `domicile record --json` | [Recorded](#recorded) |
| `domicile import --json` | [Imported](#imported) |
| `domicile daemon status --json` | [DaemonStatus](#daemonstatus) |
| `domicile doctor --json` | [Doctor](#doctor) |

Beside the fields below each has two more: `schema`, the version of what is described here, and `tool`, the tool that wrote
it. [The JSON schema](results.schema.json) is for programs.

What is not known of a run is `null`, or its field is absent; it is never 0. Times are whole nanoseconds unless the text
says otherwise.

The minor version of the schema grows with fields that a reader can pass over, the major one with everything else. `domicile
report` reads results of its own major version and of older ones (a result without `schema` is of version 0, whose times may
be written as `1200.0`), and refuses newer ones.
";

fn described(of: &Value) -> String {
    let text = of["description"].as_str().unwrap_or_default();
    // A reference is described at its definition.
    text.split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .replace('|', "\\|")
}

/// The type of a field, in a few words.
fn kind(of: &Value) -> String {
    if let Some(reference) = of["$ref"].as_str() {
        let name = reference.rsplit('/').next().unwrap_or_default();
        return format!("[{name}](#{})", name.to_lowercase());
    }
    if let Some(choices) = of["anyOf"].as_array() {
        let kinds: Vec<_> = choices.iter().map(kind).collect();
        return kinds.join(" or ");
    }
    if let Some(parts) = of["prefixItems"].as_array() {
        let kinds: Vec<_> = parts.iter().map(kind).collect();
        return format!("[{}]", kinds.join(", "));
    }
    let one = |name: &str| match name {
        "integer" => "whole number".to_string(),
        "array" => format!("list of {}", kind(&of["items"])),
        "string" => "text".to_string(),
        "boolean" => "true or false".to_string(),
        other => other.to_string(),
    };
    match &of["type"] {
        Value::String(name) => one(name),
        Value::Array(names) => {
            let names: Vec<_> = names.iter().filter_map(Value::as_str).map(one).collect();
            names.join(" or ")
        }
        _ => "value".to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_is_described_and_absent_fields_are_not_required() {
        let schema = schema();
        let outcome = &schema["$defs"]["Outcome"];
        let required = |name: &str| {
            outcome["required"]
                .as_array()
                .unwrap()
                .iter()
                .any(|field| field == name)
        };
        assert!(
            required("policy") && required("instructions") && !required("bus"),
            "{outcome}"
        );
        assert_eq!(
            outcome["properties"]["instructions"]["type"],
            json!(["integer", "null"])
        );
        assert_eq!(
            schema["$defs"]["CdpcAdvice"]["properties"]["told"]["$ref"],
            "#/$defs/Cdpc"
        );
        let page = page();
        for part in [
            "## Run\n",
            "## PageMap\n",
            "## DaemonStatus\n",
            "| `processes` | list of [ProcessReport](#processreport) |",
            "## Outcome",
            "## SlotAdvice",
            "| `wall` | whole number |",
            "[Time](#time)",
            "may be absent",
        ] {
            assert!(page.contains(part), "{part} is missing in\n{page}");
        }
    }
}
