//! The kernel's description of the processor's own counters, in `sys/bus/event_source/devices`: the
//! number of a device, and the bits of a field of an event.

use crate::{Root, SysError};

const DEVICES: &str = "sys/bus/event_source/devices";

/// The three words in which `perf_event_open(2)` takes an event's fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fields {
    pub config: u64,
    pub config1: u64,
    pub config2: u64,
}

/// The number by which a device is asked for.
///
/// Errors: there is no such device.
pub fn kind(root: &Root, device: &str) -> Result<u32, SysError> {
    Ok(root.number(&format!("{DEVICES}/{device}/type"))? as u32)
}

/// An event that the kernel describes by name, as `event=0xcd,umask=0x1,ldlat=3`.
pub fn event(root: &Root, device: &str, name: &str) -> Result<Vec<(String, u64)>, SysError> {
    let text = root.text(&format!("{DEVICES}/{device}/events/{name}"))?;
    Ok(terms(&text))
}

/// Returns whether the device's events have a field of this name.
pub fn has_field(root: &Root, device: &str, field: &str) -> bool {
    root.path(&format!("{DEVICES}/{device}/format/{field}")).exists()
}

/// Puts values into the fields of these names.
///
/// Errors: the device has no such field.
pub fn fields(root: &Root, device: &str, values: &[(String, u64)]) -> Result<Fields, SysError> {
    let mut all = Fields::default();
    for (name, value) in values {
        let format = root.text(&format!("{DEVICES}/{device}/format/{name}"))?;
        put(&mut all, &format, *value);
    }
    Ok(all)
}

/// A term without a value is 1.
fn terms(text: &str) -> Vec<(String, u64)> {
    let number = |text: &str| match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    };
    let term = |term: &str| {
        let (name, value) = term.split_once('=').unwrap_or((term, "1"));
        Some((name.trim().to_owned(), number(value.trim())?))
    };
    text.trim().split(',').filter_map(term).collect()
}

/// A format is a word and its bits, the lowest of the value first: `config1:0-15`, `config:0-7,32-35`.
fn put(all: &mut Fields, format: &str, mut value: u64) {
    let Some((word, bits)) = format.trim().split_once(':') else {
        return;
    };
    let word = match word {
        "config" => &mut all.config,
        "config1" => &mut all.config1,
        "config2" => &mut all.config2,
        _ => return,
    };
    for part in bits.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (Ok(first), Ok(last)) = (first.parse::<u32>(), last.parse::<u32>()) else {
            return;
        };
        for bit in first..=last.min(63) {
            *word |= (value & 1) << bit;
            value >>= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_put_into_the_words_that_the_kernel_describes() {
        let folder = tempfile::tempdir().unwrap();
        let device = folder.path().join(DEVICES).join("cpu");
        for (file, text) in [
            ("type", "4\n"),
            ("events/mem-loads", "event=0xcd,umask=0x1,ldlat=3\n"),
            ("format/event", "config:0-7\n"),
            ("format/umask", "config:8-15\n"),
            ("format/ldlat", "config1:0-15\n"),
            ("format/split", "config2:0-3,32-35\n"),
        ] {
            let path = device.join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let root = Root::new(folder.path());
        assert_eq!(kind(&root, "cpu").unwrap(), 4);
        assert!(kind(&root, "ibs_op").is_err() && event(&root, "cpu", "mem-stores").is_err());
        let mut loads = event(&root, "cpu", "mem-loads").unwrap();
        loads.push(("split".to_owned(), 0xa5));
        let found = fields(&root, "cpu", &loads).unwrap();
        assert_eq!((found.config, found.config1, found.config2), (0x1cd, 3, 0xa << 32 | 5));
        assert!(has_field(&root, "cpu", "ldlat") && !has_field(&root, "cpu", "l3missonly"));
        assert!(fields(&root, "cpu", &[("edge".to_owned(), 1)]).is_err());
    }
}
