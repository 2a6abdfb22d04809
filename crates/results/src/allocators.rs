//! Functions and libraries that allocate, by their names: no allocation site lies in them, so the search for one looks
//! at their callers.

/// The allocators that ask the kernel for memory.
pub const MAPPERS: &[&str] = &["mmap", "mmap64", "mremap", "brk", "sbrk"];

/// malloc and its family, and their internal functions.
pub const MALLOCS: &[&str] = &[
    "malloc",
    "calloc",
    "realloc",
    "reallocarray",
    "memalign",
    "aligned_alloc",
    "posix_memalign",
    "valloc",
    "pvalloc",
    "strdup",
    "strndup",
    "int_malloc",
    "int_realloc",
    "int_memalign",
    "sysmalloc",
    "sysmalloc_mmap",
    "glibc_morecore",
    "tcache_init",
    "minimal_malloc",
];

/// The variable of glibc by which malloc is tuned ("Memory Allocation Tunables" of its manual).
pub const TUNABLES: &str = "GLIBC_TUNABLES";

/// Returns whether such tunables ask for huge pages, by the last word of them on that; 0 is off.
pub fn asks_huge_pages(tunables: &str) -> Option<bool> {
    let (_, value) = tunables.rsplit_once("glibc.malloc.hugetlb=")?;
    Some(value.starts_with(|digit: char| ('1'..='9').contains(&digit)))
}

/// A function's name without the C library's prefixes.
pub fn plain(function: &str) -> &str {
    let plain = function.trim_start_matches("__GI_").trim_start_matches('_');
    plain.strip_prefix("libc_").unwrap_or(plain)
}

/// Valgrind's names for its replacements of malloc: `_vgr10010ZU_libcZdsoZa_malloc`.
pub fn is_replacement(function: &str) -> bool {
    function.starts_with("vgr") || function.starts_with("vgw") || function.starts_with("_vg")
}

/// malloc and its family, by the name of a function; and functions that C++ compilers inline into
/// programs.
pub fn is_allocator(function: &str) -> bool {
    const INLINED: &[&str] = &["operator new", "_Zn", "std::", "__gnu_cxx::", "_ZNSt", "_ZN9__gnu_cxx"];
    let plain = plain(function);
    MALLOCS.contains(&plain)
        || MAPPERS.contains(&plain)
        || is_replacement(function)
        || is_go_runtime(function)
        || INLINED.iter().any(|start| function.starts_with(start))
}

/// Returns whether a function is of the part of Go's library that allocates: `runtime.newobject`,
/// `runtime.growslice`.
pub fn is_go_runtime(function: &str) -> bool {
    function.starts_with("runtime.") || function.starts_with("internal/runtime/")
}

/// Libraries that take malloc's place, by the last part of their path.
pub fn is_allocator_library(module: &str) -> bool {
    [
        "libjemalloc",
        "libmimalloc",
        "libtcmalloc",
        "libtbbmalloc",
        "libhoard",
        "libsnmalloc",
    ]
    .iter()
    .any(|library| module.starts_with(library))
}

/// Returns whether the search for a site passes over a function of this name: an allocator, or a
/// wrapper of one.
pub fn is_passed_over(function: &str) -> bool {
    is_allocator(function) || is_wrapper(function)
}

/// A program's own wrapper of the allocator, by its name.
pub fn is_wrapper(function: &str) -> bool {
    function.to_ascii_lowercase().contains("alloc")
}

/// Returns whether a module, by the last part of its path, is the C or C++ library, which is never
/// a site.
pub fn is_library(module: &str) -> bool {
    [
        "libc.so",
        "libc-2",
        "ld-linux",
        "ld-2",
        "ld.so",
        "libpthread",
        "libstdc++",
        "libgcc_s",
        "vgpreload",
    ]
    .iter()
    .any(|library| module.starts_with(library))
}

/// Returns whether a source file is a library's: of the system, of the compiler, of Rust's or Go's standard library, or
/// of a crate from a registry. The user cannot change lines that are inlined from it, or that run before the user's
/// code.
pub fn is_library_source(file: &str) -> bool {
    let system = [
        "/usr/include/",
        "/usr/lib/",
        "/usr/local/include/",
        "/rustc/",
        // Crates that Rust's standard library is made of.
        "/rust/deps/",
        "/usr/src/",
        "/usr/local/go/src/",
        // The C library, as Debian builds it.
        "../sysdeps/",
        "./csu/",
        "./elf/",
        "./libio/",
        "./malloc/",
        "./nptl/",
        "./stdio-common/",
        "./stdlib/",
        "./string/",
    ];
    let anywhere = [
        "/.cargo/registry/",
        "/rustlib/src/",
        "/library/std/src/",
        "/library/core/src/",
        "/library/alloc/src/",
    ];
    system.iter().any(|folder| file.starts_with(folder)) || anywhere.iter().any(|folder| file.contains(folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_of_libraries_are_told_from_the_users() {
        for file in [
            "/rustc/59807616e/library/std/src/sys/pal/unix/stack_overflow.rs",
            "/usr/src/rustc-1.63.0/library/alloc/src/raw_vec.rs",
            "/rust/deps/hashbrown-0.16.1/src/raw/mod.rs",
            "/usr/include/c++/12/bits/stl_vector.h",
            "/home/me/.cargo/registry/src/index/rayon-1.10/src/lib.rs",
            "/usr/local/go/src/runtime/malloc.go",
            "./elf/./elf/dl-lookup.c",
        ] {
            assert!(is_library_source(file), "{file}");
        }
        for file in [
            "/home/me/src/main.rs",
            "src/main.rs",
            "/work/library/stack_overflow.rs",
            "main.go",
        ] {
            assert!(!is_library_source(file), "{file}");
        }
    }
}
