//! Data structures as plans of cache slots name them.

use policy::slots::{Measured, What};
use results::site::{Site, Symbol};
use results::{StructureKind, bytes};
use sim::CurveOutcome;
use sim::structures::Description;

/// A structure as a plan can name it.
pub fn measured(curve: &CurveOutcome) -> Option<(&CurveOutcome, Measured)> {
    let (name, what) = named(&curve.what, curve.sizes)?;
    let measured = Measured {
        name,
        what,
        bytes: curve.what.bytes,
        accesses: curve.accesses,
        misses: curve.misses,
        cold: curve.cold,
        alone: curve.alone.clone(),
    };
    Some((curve, measured))
}

fn named(of: &Description, sizes: Option<(u64, u64)>) -> Option<(String, What)> {
    match (of.kind, sizes) {
        (StructureKind::Symbol, _) => {
            let mut symbol = Symbol::parse(&of.name);
            let place = of.file.as_ref().zip(of.line);
            symbol.place = place.map(|(file, line)| (base(file).to_string(), line));
            let name = symbol.to_string();
            let module = None;
            Some((name, What::Symbol { symbol, module }))
        }
        (StructureKind::Heap, Some((at_least, at_most))) => {
            let site = Site::parse(&of.name)?;
            let what = What::Site {
                site,
                at_least,
                at_most,
            };
            // Blocks of other sizes have the same name.
            let name = match (at_most, of.blocks) {
                (u64::MAX, _) => of.name.clone(),
                (_, 1) => format!("{} of {}", of.name, bytes(of.bytes)),
                _ => format!("{} up to {}", of.name, bytes(at_most)),
            };
            Some((name, what))
        }
        _ => None,
    }
}

fn base(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}
