use super::packed::Input;
use crate::error::TraceError;
use crate::model::Header;
use crate::writer::Writer;

pub fn read(_input: Input, _process: u32, _header: &mut Header, _writer: &mut Writer) -> Result<(), TraceError> {
    Err(TraceError::Refused("not built yet".into()))
}
