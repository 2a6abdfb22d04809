mod pressure;
mod stock;
pub mod wire;
