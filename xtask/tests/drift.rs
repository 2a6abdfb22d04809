//! What is generated and kept under version control is what its source would generate today.

#[test]
fn nothing_generated_has_drifted() {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_xtask"))
        .arg("check")
        .output()
        .expect("xtask starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
}
