//! The machines that come with Domicile: those of the five papers, and some of today.
//!
//! Each is a file in `machines/`, which gives the source of every figure. To add one: put the file
//! there and a line here.

use serde::Serialize;

/// A machine description that is part of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Preset {
    pub name: &'static str,
    /// One line for lists.
    pub summary: &'static str,
    /// The description, with its sources as comments.
    #[serde(skip)]
    pub text: &'static str,
}

macro_rules! presets {
    ($($name:literal: $summary:literal,)*) => {
        const PRESETS: &[Preset] = &[$(Preset {
            name: $name,
            summary: $summary,
            text: include_str!(concat!("../../../machines/", $name, ".toml")),
        },)*];
    };
}

presets! {
    "sgi-power-indigo2-r8000": "75 MHz workstation, 2 MB 4-way L2 (Philbin 1996)",
    "sgi-indigo2-impact-r10000": "195 MHz workstation, 1 MB 2-way L2 (Philbin 1996)",
    "simos-r4400": "8 of 1 to 16 simulated 400 MHz cpus on a bus, 1 MB direct-mapped L2 (Bugnion 1996)",
    "simos-r4400-2way": "simos-r4400 with a two-way L2 (Bugnion 1996)",
    "simos-r4400-4mb": "simos-r4400 with a 4 MB direct-mapped L2 (Bugnion 1996)",
    "alphaserver-8400": "8 cpus of 350 MHz, 4 MB direct-mapped board cache (Bugnion 1996)",
    "alphaserver-8400-core": "alphaserver-8400 with the core of its Alpha 21164 (Bugnion 1996)",
    "flash-cc-numa": "8 nodes of 300 MHz, local to remote memory 1 to 4 (Verghese 1996)",
    "flash-cc-now": "8 nodes of 300 MHz, local to remote memory 1 to 10 (Verghese 1996)",
    "clovertown-x5355": "2 sockets, 8 cores of 2.66 GHz, 4 MB L2 for each pair (Ding 2011)",
    "clovertown-x5365": "4 cores of 3.0 GHz, 4 MB L2 for each pair (Lee 2012)",
    "westmere-x5660": "2 sockets, 12 cores of 2.8 GHz, 12 MB L3 for each six (Lee 2012)",
    "zen3-milan": "2 sockets of EPYC 7763, 128 cores, 32 MB L3 for each eight (2021)",
    "icelake-sp": "2 sockets of Xeon Platinum 8358, 64 cores, 48 MB sliced L3 for each 32 (2021)",
    "zen4-genoa": "2 sockets of EPYC 9554, 128 cores, 32 MB L3 for each eight (2022)",
    "zen5-turin": "2 sockets of EPYC 9575F, 128 cores, 32 MB L3 for each eight (2024)",
    "zen4-genoa-cxl": "zen4-genoa with a CXL memory expander, a node without cpus (2022)",
    "sapphire-rapids": "2 sockets of Xeon Platinum 8468, 96 cores, 105 MB sliced L3 for each 48 (2023)",
    "sapphire-rapids-snc4": "sapphire-rapids with sub-NUMA clustering: 8 nodes of 12 cores (2023)",
    "granite-rapids": "1 socket of Xeon 6972P with sub-NUMA clustering: 3 nodes of 32 cores, 160 MB L3 each (2024)",
    "cascade-lake-4s": "4 sockets of Xeon Platinum 8280, 112 cores, 38.5 MB sliced L3 for each 28 (2019)",
    "ryzen-9950x": "desktop with Ryzen 9 9950X, 16 cores, 32 MB L3 for each eight (2024)",
    "core-ultra-285k": "desktop with Core Ultra 9 285K, its 8 P-cores, 36 MB L3 (2024)",
    "graviton4": "2 sockets of AWS Graviton4, 64 of 96 cores each, 36 MB L3 for each socket (2024)",
}

/// All presets: the papers' machines by paper, then modern ones.
pub fn presets() -> &'static [Preset] {
    PRESETS
}

pub(crate) fn preset(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|preset| preset.name == name)
}
