//! Names the shared library as the linker will look for it: `libdomicile.so.<major>`.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let major = std::env::var("CARGO_PKG_VERSION_MAJOR").unwrap_or_default();
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libdomicile.so.{major}");
}
