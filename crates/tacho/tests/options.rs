//! Combinations of options of the commands on data: the command refuses an option that does not apply and changes nothing.

use std::path::Path;

use crate::tacho::{run, text};

/// Arguments, the exit code, and a part of the error text. `DIR` stands for a directory with data, `NEW` for an absent path.
type Refusal = (&'static str, i32, &'static str);

const EXPORT: &[Refusal] = &[
    ("export", 2, "--table"),
    ("export --table t --json", 2, "--out"),
    ("export --table t --out NEW.dat", 1, "the ending names no format"),
    ("export --table t --out NEW.parquet --format csv", 1, "another format than --format csv"),
    ("export --table t --out NEW.csv --format lines", 2, "lines"),
    ("export --table t --where device", 2, "--where"),
    ("export --table t --where device=car --out NEW.csv", 1, "no tag \"device\""),
    ("export --table t --from yesterday", 2, "--from"),
    (
        "export --table t --from 2024-05-02T00:00:00Z --to 2024-05-02T00:00:00Z --out NEW.csv",
        1,
        "no time lies between",
    ),
    ("export --table u --out NEW.csv", 1, "there is no table \"u\""),
    ("export --table t --url ftp://127.0.0.1:1 --out NEW.csv", 1, "only http:// and https:// addresses"),
    ("export --table t --url http://127.0.0.1:1 --insecure --out NEW.csv", 1, "--insecure is for https://"),
    ("export --table t --insecure --out NEW.csv", 2, "--url"),
];

const TABLE: &[Refusal] = &[
    ("table set t", 2, "--ttl"),
    ("table set --ttl 1d", 2, "<TABLE>"),
    ("table set t --ttl 1d --dry-run --yes", 2, "cannot be used with"),
    ("table set t --ttl tomorrow", 2, "--ttl"),
    ("table set t --ttl 1d", 1, "nothing was changed"),
    ("table set u --ttl 1d --yes", 1, "there is no table \"u\""),
    ("table list t", 2, "unexpected argument"),
];

const MAINTENANCE: &[Refusal] = &[
    ("check --backup NEW --url http://127.0.0.1:1", 2, "cannot be used with"),
    ("check --backup NEW --user somebody", 2, "cannot be used with"),
    ("check --backup NEW --config NEW", 2, "cannot be used with"),
    ("check NEW", 2, "unexpected argument"),
    ("backup", 2, "<DIR>"),
    ("backup NEW --to NEW.tar", 2, "cannot be used with"),
    ("backup --to NEW.tar --base DIR", 2, "cannot be used with"),
    ("backup --to NEW.tar --leave-out-damaged", 2, "cannot be used with"),
    ("backup --base DIR", 2, "<DIR>"),
    ("restore", 2, "<BACKUP>"),
    ("restore NEW --url http://127.0.0.1:1", 2, "unexpected argument"),
];

/// A data directory with one row in the table `t`.
fn data(place: &Path) -> std::path::PathBuf {
    let (data, file) = (place.join("data"), place.join("a.csv"));
    std::fs::write(&file, "ts,n\n2024-05-01T08:00:00Z,1\n").unwrap();
    run(&["import", "--create", "--table", "t", "--data", text(&data), text(&file)]).ok();
    data
}

fn check(refusals: &[Refusal]) {
    let place = tempfile::tempdir().unwrap();
    let data = data(place.path());
    let (data, new) = (text(&data), place.path().join("new"));
    let before = run(&["export", "--table", "t", "--data", data]).ok();
    for (line, code, expected) in refusals {
        let words: Vec<String> =
            line.split(' ').map(|word| word.replace("NEW", text(&new)).replace("DIR", data)).collect();
        let mut arguments: Vec<&str> = words.iter().map(String::as_str).collect();
        if !line.contains("--backup") && *code == 1 {
            arguments.extend(["--data", data]);
        }
        let error = run(&arguments).failed(*code);
        assert!(error.contains(expected), "{line}: {error}");
    }
    let names = place.path().read_dir().unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<_> = names.collect();
    names.sort();
    assert_eq!(names, ["a.csv", "data"], "nothing was made");
    assert_eq!(run(&["export", "--table", "t", "--data", data]).ok(), before);
}

#[test]
fn options_of_export_that_do_not_apply_are_refused() {
    check(EXPORT);
}

#[test]
fn options_of_table_that_do_not_apply_are_refused() {
    check(TABLE);
}

#[test]
fn options_of_check_backup_and_restore_that_do_not_apply_are_refused() {
    check(MAINTENANCE);
}

#[test]
fn options_that_fit_together_are_accepted() {
    let place = tempfile::tempdir().unwrap();
    let data = data(place.path());
    let at = |name: &str| place.path().join(name);
    let (first, second, tar) = (at("first"), at("second"), at("backup.tar"));
    let (csv, parquet) = (at("t.csv"), at("t.dat"));
    let all: [&[&str]; 9] = [
        &["export", "--table", "t", "--out", text(&csv), "--json"],
        &["export", "--table", "t", "--out", text(&parquet), "--format", "parquet"],
        &["export", "--table", "t", "--from", "2024-05-01T00:00:00Z", "--to", "2024-05-02T00:00:00Z"],
        &["table", "set", "t", "--ttl", "1d", "--dry-run", "--json"],
        &["table", "set", "u", "--ttl", "1d", "--create"],
        &["check", "--json"],
        &["backup", text(&first), "--leave-out-damaged", "--json"],
        &["backup", text(&second), "--base", text(&first)],
        &["backup", "--to", text(&tar), "--json"],
    ];
    for arguments in all {
        run(&[arguments, &["--data", text(&data)]].concat()).ok();
    }
    run(&["sql", "SELECT n FROM t", "--data", text(&data)]).ok();
    run(&["check", "--backup", text(&second), "--json"]).ok();
    run(&["restore", text(&tar), "--data", text(&at("restored")), "--json"]).ok();
}
