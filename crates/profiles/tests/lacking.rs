//! What is said where a result lacks what a form is made of.

use profiles::{Format, NoProfile, Value, export};
use results::{Advice, Comparison, Document, Profile, Timeline};

use crate::invented;

fn lacks(document: &Document, format: Format, value: Value) -> NoProfile {
    export(document, format, value).expect_err("it lacks something")
}

#[test]
fn a_comparison_has_no_profile() {
    let comparison = Document::Comparison(Box::<Comparison>::default());
    for format in Format::ALL {
        assert_eq!(lacks(&comparison, format, Value::Stall), NoProfile::Comparison);
    }
    assert!(NoProfile::Comparison.to_string().contains("one of the two results"));
}

#[test]
fn an_old_result_is_to_be_made_anew() {
    let old = Document::Advice(Box::<Advice>::default());
    for format in [Format::Pprof, Format::Folded, Format::Callgrind] {
        assert_eq!(lacks(&old, format, Value::Stall), NoProfile::Stacks);
    }
    assert_eq!(lacks(&old, Format::Perfetto, Value::Stall), NoProfile::Timeline);
    assert!(NoProfile::Stacks.to_string().contains("`domicile simulate --by stack`"));
    assert!(
        NoProfile::Timeline
            .to_string()
            .contains("`domicile simulate --by time`")
    );
    let none = Document::Outcomes(Vec::new());
    assert_eq!(lacks(&none, Format::Pprof, Value::Stall), NoProfile::Stacks);
    assert_eq!(lacks(&none, Format::Parquet, Value::Stall), NoProfile::Tables);
}

#[test]
fn nothing_is_avoided_without_a_change() {
    let unchanged = Profile {
        change: None,
        ..invented::profile()
    };
    let unchanged = invented::outcomes(unchanged, Timeline::default());
    for format in [Format::Pprof, Format::Folded] {
        assert_eq!(lacks(&unchanged, format, Value::Avoided), NoProfile::Change);
        assert!(export(&unchanged, format, Value::Misses).is_ok());
    }
    // Forms that have all values that there are take no choice.
    for format in [Format::Callgrind, Format::Perfetto, Format::Parquet] {
        assert_eq!(lacks(&unchanged, format, Value::Avoided), NoProfile::Value);
    }
}
