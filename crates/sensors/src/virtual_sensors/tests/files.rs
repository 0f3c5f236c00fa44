//! Descriptors as files: what is planned, or the fault with its place.

use std::fs;
use std::path::{Path, PathBuf};

use super::*;
use crate::virtual_sensors::limits::{DESCRIPTOR_BYTES_MAX, DESCRIPTOR_DEPTH_MAX, DESCRIPTOR_NODES_MAX};

fn files(kind: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/virtual_sensors").join(kind);
    let entries = fs::read_dir(folder).expect("the folder of the descriptors");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let mut paths: Vec<_> = paths.filter(|path| path.extension().is_some_and(|kind| kind != "txt")).collect();
    paths.sort();
    assert!(!paths.is_empty());
    paths
}

/// Compares what a descriptor gives with the file `NAME.txt` beside it.
fn compare(kind: &str, given: impl Fn(&str) -> String) {
    let mut differences = Vec::new();
    for path in files(kind) {
        let text = fs::read_to_string(&path).expect("a descriptor");
        let mut name = path.clone().into_os_string();
        name.push(".txt");
        let expected = fs::read_to_string(&name).unwrap_or_default();
        let given = given(&text);
        if given != expected {
            differences.push(format!("{}\n--- expected\n{expected}--- given\n{given}", path.display()));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n\n"));
}

#[test]
fn good_files_are_planned_as_their_texts_say() {
    compare("good", |text| {
        let plan = plan(text);
        let notes: String =
            plan.notes.iter().map(|note| format!("{}: {}\n", note.place, note.text)).collect();
        format!("{}{notes}", plan.explain())
    });
}

#[test]
fn bad_files_are_refused_as_their_texts_say() {
    compare("bad", |text| format!("{}\n", fault(text)));
}

#[test]
fn xml_and_toml_of_one_sensor_say_the_same() {
    let paths = files("good");
    let read = |name: &str| {
        let path = paths.iter().find(|path| path.ends_with(name)).expect("the file");
        let plan = plan(&fs::read_to_string(path).expect("a descriptor"));
        (plan.explain(), plan.class.clone(), plan.notes.len())
    };
    assert_eq!(read("street.xml"), read("street.toml"));
}

#[test]
fn a_file_has_limits() {
    let large = " ".repeat(DESCRIPTOR_BYTES_MAX + 1);
    assert!(fault(&large).contains("DESCRIPTOR_BYTES_MAX"));
    let deep = format!("<virtual-sensor name='v'>{}", "<a>".repeat(DESCRIPTOR_DEPTH_MAX + 1));
    let deep = format!("{deep}{}</virtual-sensor>", "</a>".repeat(DESCRIPTOR_DEPTH_MAX + 1));
    assert!(fault(&deep).contains("DESCRIPTOR_DEPTH_MAX"), "{}", fault(&deep));
    let wide = format!("<virtual-sensor name='v'>{}</virtual-sensor>", "<a/>".repeat(DESCRIPTOR_NODES_MAX));
    assert!(fault(&wide).contains("DESCRIPTOR_NODES_MAX"), "{}", fault(&wide));
    let wide = "<virtual-sensor name='v'><a b='' c='' d=''/>".to_owned();
    let wide = format!("{wide}{}</virtual-sensor>", "<a b='' c='' d=''/>".repeat(DESCRIPTOR_NODES_MAX / 3));
    assert!(fault(&wide).contains("DESCRIPTOR_NODES_MAX"), "{}", fault(&wide));
}

#[test]
fn places_in_a_query_are_places_in_the_file() {
    let xml = one_source(
        "storage-size='1'",
        "select x from wrapper",
        "select\n  nothing from a",
        &[("x", "double")],
    );
    assert!(fault(&xml).starts_with("line 2, column 3: there is no field \"nothing\""), "{}", fault(&xml));
}
