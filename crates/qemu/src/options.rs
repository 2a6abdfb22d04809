//! The plugin's options: `-plugin libdomicile_qemu.so,trace=FILE,report=FILE,from=marker,references=N,check=on`.

use std::path::PathBuf;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    pub trace: PathBuf,
    /// The file for a report, as JSON, on what was written.
    pub report: Option<PathBuf>,
    /// True if recording begins at a marker; else with the machine.
    pub from_marker: bool,
    /// References after which recording ends; `None`: with the machine, or at a marker.
    pub references: Option<u64>,
    /// True if QEMU is queried for every physical address, and differences are counted.
    pub check: bool,
    /// The guest's program, for people.
    pub program: String,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum OptionError {
    #[error(
        "`{0}` is no option: trace=FILE, report=FILE, from=start|marker, references=N, check=on|off, program=WORDS"
    )]
    Unknown(String),
    #[error("{option}: found `{found}`; allowed: {allowed}")]
    Value {
        option: &'static str,
        found: String,
        allowed: &'static str,
    },
    #[error("trace=FILE is missing: where the references go")]
    NoTrace,
}

impl Options {
    pub fn read<'a>(words: impl IntoIterator<Item = &'a str>) -> Result<Options, OptionError> {
        let mut options = Options::default();
        for word in words {
            let (name, value) = word.split_once('=').unwrap_or((word, ""));
            let refused = |option, allowed| OptionError::Value {
                option,
                found: value.to_string(),
                allowed,
            };
            match name {
                "trace" => options.trace = value.into(),
                "report" => options.report = Some(value.into()),
                "program" => options.program = value.to_string(),
                "from" => {
                    options.from_marker = match value {
                        "start" => false,
                        "marker" => true,
                        _ => return Err(refused("from", "start, marker")),
                    }
                }
                "check" => {
                    options.check = match value {
                        "on" => true,
                        "off" => false,
                        _ => return Err(refused("check", "on, off")),
                    }
                }
                "references" => {
                    let number = value.parse().ok().filter(|number| *number > 0);
                    options.references = Some(number.ok_or_else(|| refused("references", "a number from 1"))?);
                }
                _ => return Err(OptionError::Unknown(word.to_string())),
            }
        }
        match options.trace.as_os_str().is_empty() {
            true => Err(OptionError::NoTrace),
            false => Ok(options),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_and_wrong_ones_named() {
        let read = |words: &str| Options::read(words.split(','));
        let all = read("trace=a.dtr,report=r,from=marker,references=9,check=on,program=make -j4").unwrap();
        assert_eq!((all.from_marker, all.references, all.check), (true, Some(9), true));
        assert_eq!(all.program, "make -j4");
        assert_eq!(read("report=r"), Err(OptionError::NoTrace));
        assert_eq!(
            read("trace=a,trcae=b"),
            Err(OptionError::Unknown("trcae=b".to_string()))
        );
        assert!(
            read("trace=a,references=0")
                .unwrap_err()
                .to_string()
                .contains("a number from 1")
        );
        assert!(read("trace=a,check=yes").unwrap_err().to_string().contains("on, off"));
        assert!(
            read("trace=a,from=now")
                .unwrap_err()
                .to_string()
                .contains("start, marker")
        );
    }
}
