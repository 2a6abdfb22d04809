//! From TOML to a [`Plan`], with errors that say where and what.

use std::collections::{HashMap, HashSet};

use serde::Deserialize;
use serde_spanned::Spanned;

use super::{PLAN_LIMIT, Plan, PlannedData, PlannedSlot, Site, Symbol, What};
use crate::slots::Kind;

/// Longest plan that is read.
const TEXT_LIMIT: usize = 1 << 20;

/// Highest cpu number that a plan may name.
const CPU_LIMIT: u32 = 1 << 16;

/// An error in a plan, and its place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// Not TOML, a missing key, or an unknown one.
    #[error("{file}:{line}:{column}: {message}")]
    Syntax {
        file: String,
        line: usize,
        column: usize,
        message: String,
    },
    /// `key` is dotted, with the position in the file for each table, from 0: `data[1].slot`.
    #[error("{file}:{line}: {key}: found {found}; allowed: {allowed}")]
    Value {
        file: String,
        line: usize,
        key: String,
        found: String,
        allowed: String,
    },
    #[error("{file}: {bytes} bytes is too long for a plan of slots; at most {TEXT_LIMIT} are read")]
    TooLong { file: String, bytes: usize },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPlan {
    #[serde(default)]
    slot: Vec<Spanned<RawSlot>>,
    #[serde(default)]
    data: Vec<Spanned<RawData>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSlot {
    name: Spanned<String>,
    bytes: Spanned<RawBytes>,
    kind: Spanned<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawData {
    symbol: Option<Spanned<String>>,
    module: Option<Spanned<String>>,
    site: Option<Spanned<String>>,
    at_least: Option<Spanned<RawBytes>>,
    at_most: Option<Spanned<RawBytes>>,
    slot: Spanned<String>,
    cpus: Option<Spanned<Vec<Spanned<i64>>>>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "a number of bytes, or a size such as \"256 KiB\"")]
enum RawBytes {
    Number(i64),
    Text(String),
}

impl Plan {
    /// The plan that `text` holds; `file` names it in errors.
    pub fn read(text: &str, file: &str) -> Result<Plan, PlanError> {
        if text.len() > TEXT_LIMIT {
            return Err(PlanError::TooLong {
                file: file.to_string(),
                bytes: text.len(),
            });
        }
        let place = Lines { text, file };
        let raw: RawPlan = toml::from_str(text).map_err(|error| {
            let (line, column) = place.at(error.span().map_or(0, |span| span.start));
            PlanError::Syntax {
                file: file.to_string(),
                line,
                column,
                message: error.message().trim().replace('\n', "; "),
            }
        })?;
        for (key, tables) in [("slot", raw.slot.len()), ("data", raw.data.len())] {
            if tables > PLAN_LIMIT {
                let allowed = format!("at most {PLAN_LIMIT}");
                return Err(place.fault(0, key.to_string(), format!("{tables} tables"), allowed));
            }
        }
        let mut plan = Plan::default();
        let mut named = HashMap::new();
        for (at, slot) in raw.slot.into_iter().enumerate() {
            let slot = place.slot(at, slot.into_inner(), &named)?;
            named.insert(slot.name.clone(), at);
            plan.slots.push(slot);
        }
        let mut meant = HashSet::new();
        for (at, data) in raw.data.into_iter().enumerate() {
            let start = data.span().start;
            let data = place.data(at, start, data.into_inner(), &named)?;
            if !meant.insert(format!("{:?}", data.what)) {
                let found = format!("the same data as an entry above ({})", data.what.name());
                let allowed = "one entry for each; the first one counts".to_string();
                return Err(place.fault(start, format!("data[{at}]"), found, allowed));
            }
            plan.data.push(data);
        }
        Ok(plan)
    }
}

impl What {
    fn name(&self) -> String {
        match self {
            What::Symbol { symbol, .. } => symbol.to_string(),
            What::Site { site, .. } => site.to_string(),
        }
    }
}

struct Lines<'a> {
    text: &'a str,
    file: &'a str,
}

impl Lines<'_> {
    /// Line and column, from 1, of a byte offset.
    fn at(&self, offset: usize) -> (usize, usize) {
        let before = self.text.as_bytes().get(..offset).unwrap_or(self.text.as_bytes());
        let start = before.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        let line = before.iter().filter(|&&byte| byte == b'\n').count() + 1;
        (line, before.len() - start + 1)
    }

    fn fault(&self, offset: usize, key: String, found: String, allowed: String) -> PlanError {
        PlanError::Value {
            file: self.file.to_string(),
            line: self.at(offset).0,
            key,
            found,
            allowed,
        }
    }

    fn slot(&self, at: usize, raw: RawSlot, named: &HashMap<String, usize>) -> Result<PlannedSlot, PlanError> {
        let name = raw.name.get_ref().trim();
        let wrong = match name {
            "" => Some("a name"),
            "none" => Some("another name: `none` says that data is not to be kept in the cache"),
            _ if named.contains_key(name) => Some("a name that no other slot has"),
            _ => None,
        };
        if let Some(allowed) = wrong {
            let key = format!("slot[{at}].name");
            return Err(self.fault(raw.name.span().start, key, quoted(name), allowed.to_string()));
        }
        let kind = match raw.kind.get_ref().as_str() {
            "private" => Kind::Private,
            "shared" => Kind::Shared,
            other => {
                let allowed = "\"private\" (strong locality) or \"shared\" (weak locality)".to_string();
                return Err(self.fault(
                    raw.kind.span().start,
                    format!("slot[{at}].kind"),
                    quoted(other),
                    allowed,
                ));
            }
        };
        Ok(PlannedSlot {
            name: name.to_string(),
            bytes: self.bytes(&raw.bytes, 1, || format!("slot[{at}].bytes"))?,
            kind,
            why: None,
        })
    }

    fn data(
        &self,
        at: usize,
        start: usize,
        raw: RawData,
        named: &HashMap<String, usize>,
    ) -> Result<PlannedData, PlanError> {
        let key = |key: &str| format!("data[{at}].{key}");
        let what = match (&raw.symbol, &raw.site) {
            (Some(symbol), None) => {
                if let Some((name, size)) = [("at_least", &raw.at_least), ("at_most", &raw.at_most)]
                    .into_iter()
                    .find_map(|(name, size)| Some((name, size.as_ref()?)))
                {
                    let allowed = "nothing, beside a symbol: it has the size it has".to_string();
                    return Err(self.fault(size.span().start, key(name), "a size".to_string(), allowed));
                }
                let parsed = Symbol::parse(symbol.get_ref());
                if parsed.name.is_empty() {
                    let allowed = "the name of a variable".to_string();
                    return Err(self.fault(symbol.span().start, key("symbol"), quoted(symbol.get_ref()), allowed));
                }
                What::Symbol {
                    symbol: parsed,
                    module: raw.module.map(|module| module.get_ref().trim().to_string()),
                }
            }
            (None, Some(site)) => self.site(&raw, site, &key)?,
            (both, _) => {
                let found = if both.is_some() { "both" } else { "neither" };
                let allowed = "one of `symbol` and `site`".to_string();
                return Err(self.fault(start, format!("data[{at}]"), found.to_string(), allowed));
            }
        };
        let name = raw.slot.get_ref().trim();
        let slot = match (name, named.get(name)) {
            ("none", _) => None,
            (_, Some(&slot)) => Some(slot),
            _ => {
                let mut names: Vec<&str> = named.keys().map(String::as_str).collect();
                names.sort_unstable_by_key(|name| named[*name]);
                names.truncate(16);
                names.push("none");
                let allowed = format!("the name of a slot: {}", names.join(", "));
                return Err(self.fault(raw.slot.span().start, key("slot"), quoted(name), allowed));
            }
        };
        let mut cpus = Vec::new();
        if let Some(raw) = &raw.cpus {
            if raw.get_ref().is_empty() {
                let allowed = "at least one cpu; leave the key out for all".to_string();
                return Err(self.fault(raw.span().start, key("cpus"), "[]".to_string(), allowed));
            }
            for cpu in raw.get_ref() {
                match u32::try_from(*cpu.get_ref()) {
                    Ok(number) if number < CPU_LIMIT => cpus.push(number),
                    _ => {
                        let allowed = format!("numbers of cpus, from 0 to {}", CPU_LIMIT - 1);
                        return Err(self.fault(cpu.span().start, key("cpus"), cpu.get_ref().to_string(), allowed));
                    }
                }
            }
            cpus.sort_unstable();
            cpus.dedup();
        }
        Ok(PlannedData {
            what,
            slot,
            cpus,
            why: None,
        })
    }

    fn site(&self, raw: &RawData, site: &Spanned<String>, key: &dyn Fn(&str) -> String) -> Result<What, PlanError> {
        if let Some(module) = &raw.module {
            let allowed = "nothing, beside a site; write it behind the function: \"grow (libx.so)\"".to_string();
            return Err(self.fault(module.span().start, key("module"), quoted(module.get_ref()), allowed));
        }
        let Some(parsed) = Site::parse(site.get_ref()) else {
            let allowed = "a place such as \"makea (cg.c:412)\", \"cg.c:412\" or \"makea\"".to_string();
            return Err(self.fault(site.span().start, key("site"), quoted(site.get_ref()), allowed));
        };
        let size = |name: &str, raw: &Option<Spanned<RawBytes>>, otherwise| match raw {
            Some(raw) => self.bytes(raw, 0, || key(name)),
            None => Ok(otherwise),
        };
        let at_least = size("at_least", &raw.at_least, 0)?;
        let at_most = size("at_most", &raw.at_most, u64::MAX)?;
        if at_least > at_most {
            let offset = raw.at_most.as_ref().map_or(0, |raw| raw.span().start);
            let allowed = format!("at least {at_least}, which is at_least");
            return Err(self.fault(offset, key("at_most"), at_most.to_string(), allowed));
        }
        Ok(What::Site {
            site: parsed,
            at_least,
            at_most,
        })
    }

    fn bytes(&self, raw: &Spanned<RawBytes>, least: u64, key: impl Fn() -> String) -> Result<u64, PlanError> {
        let (bytes, found) = match raw.get_ref() {
            RawBytes::Number(number) => (u64::try_from(*number).ok(), number.to_string()),
            RawBytes::Text(text) => (results::quantities::bytes(text).ok(), quoted(text)),
        };
        bytes.filter(|&bytes| bytes >= least).ok_or_else(|| {
            let allowed = format!("a number of bytes from {least}, or a size such as \"256 KiB\" (B, KiB, MiB, GiB)");
            self.fault(raw.span().start, key(), found, allowed)
        })
    }
}

fn quoted(text: &str) -> String {
    format!("{:?}", text.chars().take(60).collect::<String>())
}
