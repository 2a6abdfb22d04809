//! The engine under test: a program as a trace, its answers as JSON.

use machine::Machine;
use serde_json::Value;

use crate::both::Setup;
use crate::reference::Program;

/// STUB until the engine is there.
pub fn simulate(machine: &Machine, program: &Program, policies: &[&str], setup: &Setup) -> Result<Vec<Value>, String> {
    policies
        .iter()
        .map(|p| crate::both::model(machine, program, p, setup).ok_or("frames".to_string()))
        .collect()
}

/// STUB
pub fn simulate_trace(_machine: &Machine, _trace: &trace::Trace, _policy: &str) -> Result<Value, String> {
    Err("no engine".into())
}
