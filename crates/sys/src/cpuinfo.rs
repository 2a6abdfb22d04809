//! The processor's name and clock, as /proc/cpuinfo and cpufreq report them.

use crate::{Root, SysError};

/// The fields of the first processor in /proc/cpuinfo.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Processor {
    /// `AMD EPYC 7763 64-Core Processor`; Arm kernels do not report it.
    pub model: Option<String>,
    pub vendor: Option<String>,
    /// True if the kernel reports that it runs under a hypervisor.
    pub is_guest: bool,
}

/// Reads the first processor of /proc/cpuinfo.
pub fn processor(root: &Root) -> Result<Processor, SysError> {
    let text = root.text("proc/cpuinfo")?;
    let field = |name: &str| field(&text, name).map(|value| value.split_whitespace().collect::<Vec<_>>().join(" "));
    Ok(Processor {
        model: field("model name")
            .or_else(|| field("Processor"))
            .or_else(|| field("cpu")),
        vendor: field("vendor_id").or_else(|| field("CPU implementer")),
        is_guest: field("flags").is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor")),
    })
}

/// The steady clock of `cpu` in MHz, and the file that it comes from: the base frequency of cpufreq, else
/// the number in the model's name, else the highest frequency of cpufreq, else that of /proc/cpuinfo,
/// which may be that of an idle moment.
///
/// Ensures: finite and from 1 to 100000.
pub fn clock_mhz(root: &Root, cpu: u32) -> Option<(f64, &'static str)> {
    let cpufreq = |file: &str| {
        let khz = root
            .number(&format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/{file}"))
            .ok()?;
        Some(khz as f64 / 1000.0)
    };
    let cpuinfo = root.text("proc/cpuinfo").unwrap_or_default();
    let named = || field(&cpuinfo, "model name").and_then(clock_in_name);
    let current = || field(&cpuinfo, "cpu MHz")?.parse::<f64>().ok();
    let sane = |mhz: &f64| mhz.is_finite() && (1.0..=100_000.0).contains(mhz);
    None.or_else(|| {
        cpufreq("base_frequency")
            .filter(sane)
            .map(|mhz| (mhz, "cpufreq/base_frequency"))
    })
    .or_else(|| named().filter(sane).map(|mhz| (mhz, "the model name in /proc/cpuinfo")))
    .or_else(|| {
        cpufreq("cpuinfo_max_freq")
            .filter(sane)
            .map(|mhz| (mhz, "cpufreq/cpuinfo_max_freq"))
    })
    .or_else(|| current().filter(sane).map(|mhz| (mhz, "cpu MHz in /proc/cpuinfo")))
}

fn field<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name && !value.trim().is_empty()).then(|| value.trim())
    })
}

/// `Intel(R) Xeon(R) CPU E5-2680 0 @ 2.70GHz`
fn clock_in_name(name: &str) -> Option<f64> {
    let (_, clock) = name.rsplit_once('@')?;
    let clock = clock.trim();
    let (digits, unit) = match clock.strip_suffix("GHz") {
        Some(digits) => (digits, 1000.0),
        None => (clock.strip_suffix("MHz")?, 1.0),
    };
    // In hundredths of a GHz there are no digits beyond the kHz.
    Some((digits.trim().parse::<f64>().ok()? * unit * 1000.0).round() / 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_in_names() {
        assert_eq!(clock_in_name("Intel(R) Xeon(R) CPU E5-2680 0 @ 2.70GHz"), Some(2700.0));
        assert_eq!(clock_in_name("Genuine Intel(R) CPU @ 0000 @ 2.93GHz"), Some(2930.0));
        assert_eq!(clock_in_name("AMD EPYC 7763 64-Core Processor"), None);
        assert_eq!(clock_in_name("@ GHz"), None);
    }

    #[test]
    fn fields() {
        let text = "processor\t: 0\nmodel name\t: Some  CPU\nflags\t\t: fpu hypervisor\n\nprocessor\t: 1\n";
        assert_eq!(field(text, "model name"), Some("Some  CPU"));
        assert_eq!(field(text, "vendor_id"), None);
    }
}
