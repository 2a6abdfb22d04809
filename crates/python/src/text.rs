//! Text of results for Python.

/// Columns of text where nothing else is asked for.
pub const COLUMNS: usize = 100;

/// Text without the styles of terminals.
pub fn plain(styled: &str) -> String {
    anstream::adapter::strip_str(styled).to_string()
}
