//! The outermost caches of a machine of which there are several.

use machine::{Kind, Machine};
use policy::Domains;

/// `None`: there is one cache for all cpus, or none.
pub fn domains(machine: &Machine) -> Option<Domains> {
    let several = machine
        .caches
        .iter()
        .filter(|cache| cache.kind != Kind::Instruction && cache.cpus_per_instance < machine.cpus);
    let cache = several.max_by_key(|cache| cache.level)?;
    Some(Domains {
        name: cache.name.clone(),
        bytes: cache.bytes,
        of_cpu: (0..machine.cpus).map(|cpu| cpu / cache.cpus_per_instance).collect(),
    })
}
