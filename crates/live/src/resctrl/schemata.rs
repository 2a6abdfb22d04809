//! The text of `schemata` and `size`: a line for each resource, `L3:0=fffff;1=fffff`.

use std::collections::BTreeMap;

use super::Mask;

/// Values by resource and cache. Lines and values that cannot be understood are left out: there are
/// resources (bandwidth) that are none of ours.
#[derive(Debug, Default)]
pub(super) struct Schemata(BTreeMap<String, BTreeMap<u32, u64>>);

impl Schemata {
    /// Masks are in hexadecimal.
    pub(super) fn read(text: &str) -> Schemata {
        Schemata::parse(text, 16)
    }

    /// Sizes are in decimal.
    pub(super) fn read_sizes(text: &str) -> Schemata {
        Schemata::parse(text, 10)
    }

    fn parse(text: &str, radix: u32) -> Schemata {
        let mut resources = BTreeMap::new();
        for line in text.lines() {
            let Some((resource, values)) = line.split_once(':') else {
                continue;
            };
            let value = |part: &str| {
                let (cache, value) = part.split_once('=')?;
                let value = u64::from_str_radix(value.trim().trim_start_matches("0x"), radix).ok()?;
                Some((cache.trim().parse().ok()?, value))
            };
            resources.insert(
                resource.trim().to_string(),
                values.split(';').filter_map(value).collect(),
            );
        }
        Schemata(resources)
    }

    /// The ways that all the resources have, by cache: code and data of a cache get the same.
    pub(super) fn masks(&self, resources: &[String]) -> BTreeMap<u32, Mask> {
        let mut masks = BTreeMap::new();
        for values in resources.iter().filter_map(|resource| self.0.get(resource)) {
            for (&cache, &mask) in values {
                *masks.entry(cache).or_insert(0) |= mask;
            }
        }
        masks
    }
}

/// The lines that give these masks.
pub(super) fn text(resources: &[String], masks: &BTreeMap<u32, Mask>) -> String {
    let values: Vec<String> = masks.iter().map(|(cache, mask)| format!("{cache}={mask:x}")).collect();
    let values = values.join(";");
    resources
        .iter()
        .map(|resource| format!("{resource}:{values}\n"))
        .collect()
}
