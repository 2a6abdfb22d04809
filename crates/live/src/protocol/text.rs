//! The request of `domicile run` to take the text of programs from copies on their nodes.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Has the instructions themselves, as JSON.
pub const ENVIRONMENT: &str = "DOMICILE_TEXT";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextInstructions {
    pub version: u32,
    /// The store of copies.
    pub store: PathBuf,
    /// The number of the command's process: the program is its child, whatever it becomes by exec.
    pub command: u32,
    /// True if programs that this one starts do the same.
    pub children: bool,
    /// The earlier value of `LD_PRELOAD`; programs that this one starts find it so again.
    pub preload_before: Option<String>,
}

impl TextInstructions {
    pub fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Errors: why they are no instructions of this version.
    pub fn read(text: &str) -> Result<TextInstructions, String> {
        let read: TextInstructions = serde_json::from_str(text).map_err(|error| error.to_string())?;
        match read.version {
            super::VERSION => Ok(read),
            version => Err(format!("version {version}, not {}", super::VERSION)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_read_as_they_were_written() {
        let instructions = TextInstructions {
            version: super::super::VERSION,
            store: "/proc/7/fd/3".into(),
            command: 7,
            children: true,
            preload_before: Some("a.so".to_string()),
        };
        assert_eq!(TextInstructions::read(&instructions.text()), Ok(instructions.clone()));
        let other = TextInstructions {
            version: 1,
            ..instructions
        };
        assert!(TextInstructions::read(&other.text()).unwrap_err().contains("version 1"));
        assert!(TextInstructions::read("{").is_err());
    }
}
