//! What is embedded in pages is what its package has.

use sha2::{Digest, Sha256};

#[test]
fn the_plotting_library_is_as_it_was_published() {
    let library = include_bytes!("../assets/echarts.min.js");
    let hash: String = Sha256::digest(library)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    assert_eq!(hash, "b66b25aeb4df84e33199dc21694014d336d222cbd9deb0e5a7c14bd6aa0d0fd0");
}
