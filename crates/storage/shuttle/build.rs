//! Compiles the crate with the locks, atomics and threads of shuttle.

fn main() {
    println!("cargo::rustc-cfg=shuttle");
    println!("cargo::rerun-if-changed=build.rs");
}
