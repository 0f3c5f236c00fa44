//! Tells cargo to embed the dashboard again when it was built again.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=../../dashboard/dist");
}
