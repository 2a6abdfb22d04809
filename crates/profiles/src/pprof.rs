//! `profile.proto`, compressed: the format of `go tool pprof` and many others.

mod message;

use std::collections::HashMap;
use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use prost::Message;

use crate::Value;
use crate::runs::Run;
use crate::stacks::Stacks;
use message::{Function, Label, Line, Location, Mapping, Profile, Sample, ValueType};

/// The label of a sample for the data that it waits for: `go tool pprof -tagroot=structure` groups by it.
const STRUCTURE: &str = "structure";

/// The single file of code for all places: if a profile says that it has no names, readers search files for them.
const MAPPING: u64 = 1;

pub fn profile(run: &Run, of: &Stacks, value: Value) -> Vec<u8> {
    let mut strings = Strings::default();
    // The empty text is the first by the format's rule.
    strings.index("");
    let mut values = vec![Value::Stall, Value::Misses];
    values.extend(of.change.map(|_| Value::Avoided));
    let mut comments = run.about();
    comments.extend(
        of.change
            .map(|change| format!("avoided: the part of the waiting that this change avoids: \"{change}\"")),
    );

    let sample = of.stacks.iter().map(|stack| Sample {
        location_id: stack.frames.iter().map(|frame| id(*frame)).collect(),
        value: values.iter().map(|value| stack.weight(*value)).collect(),
        label: vec![Label {
            key: strings.index(STRUCTURE),
            text: strings.index(&stack.structure),
        }],
    });
    let sample = sample.collect();
    let location = of.frames.iter().enumerate().map(|(at, frame)| Location {
        id: id(at),
        mapping_id: MAPPING,
        line: vec![Line {
            function_id: id(frame.function),
            line: frame.line.unwrap_or(0).into(),
        }],
    });
    let location = location.collect();
    // Without a linker's name, which readers would try to translate.
    let function = of.functions.iter().enumerate().map(|(at, function)| Function {
        id: id(at),
        name: strings.index(&function.name),
        filename: function.file.as_deref().map_or(0, |file| strings.index(file)),
    });
    let function = function.collect();
    let sample_type = values.iter().map(|value| strings.value_type(*value)).collect();
    let mapping = vec![Mapping {
        id: MAPPING,
        filename: strings.index(run.program),
        has_functions: true,
        has_filenames: true,
        has_line_numbers: true,
        has_inline_frames: true,
    }];
    let period_type = Some(strings.value_type(Value::Stall));
    let comment = comments.iter().map(|comment| strings.index(comment)).collect();
    let default_sample_type = strings.index(value.name());
    compressed(&Profile {
        sample_type,
        sample,
        mapping,
        location,
        function,
        string_table: strings.all,
        period_type,
        period: 1,
        comment,
        default_sample_type,
    })
}

/// Ids begin with 1.
fn id(index: usize) -> u64 {
    index as u64 + 1
}

fn compressed(profile: &Profile) -> Vec<u8> {
    let mut file = GzEncoder::new(Vec::new(), Compression::default());
    file.write_all(&profile.encode_to_vec())
        .and_then(|()| file.finish())
        .expect("writing to memory does not fail")
}

/// Each text once.
#[derive(Default)]
struct Strings {
    all: Vec<String>,
    index: HashMap<String, i64>,
}

impl Strings {
    fn index(&mut self, text: &str) -> i64 {
        if let Some(index) = self.index.get(text) {
            return *index;
        }
        let index = self.all.len() as i64;
        self.all.push(text.to_string());
        self.index.insert(text.to_string(), index);
        index
    }

    fn value_type(&mut self, value: Value) -> ValueType {
        ValueType {
            kind: self.index(value.name()),
            unit: self.index(value.unit()),
        }
    }
}
