//! Checks that the options fit together. An option without effect is refused, because its user expects an effect.

use std::path::PathBuf;

use hub::bulk::Zone;
use import::devices::DeviceOf;
use import::{FileFormat, TimeFormat};

use super::args::ImportArgs;

/// The task of an import.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Task {
    /// Rows of devices.
    Devices(DeviceOf),
    Table(String, FileFormat),
    /// Lines that name their tables.
    Lines,
}

/// The task that the options describe.
///
/// # Errors
/// The reason why an option does not apply.
pub(super) fn task(args: &ImportArgs) -> Result<Task, String> {
    let format = format(args)?;
    let task = match (&args.table, &args.device, &args.device_column, format) {
        (Some(_), _, _, FileFormat::Lines) => {
            return Err("lines name their tables: leave --table out, or say another --format".into());
        }
        (Some(table), _, _, format) => Task::Table(table.clone(), format),
        (None, None, None, FileFormat::Lines) => Task::Lines,
        (None, Some(_), _, FileFormat::Lines | FileFormat::Parquet)
        | (None, _, Some(_), FileFormat::Lines | FileFormat::Parquet) => {
            return Err("data of devices come as CSV; for other files say --table (and --tag device)".into());
        }
        (None, None, None, FileFormat::Parquet) => {
            return Err("say which --table the rows go to".into());
        }
        (None, Some(name), _, _) => Task::Devices(DeviceOf::Named(name.clone())),
        (None, None, Some(_), _) => Task::Devices(DeviceOf::Column),
        (None, None, None, _) if args.create => Task::Devices(DeviceOf::FileName),
        (None, None, None, _) => {
            return Err("say whose data that is: --device NAME, --device-column COLUMN, or --table TABLE; \
                 with --create a file is the data of a device that is called like it"
                .into());
        }
    };
    for (is_given, option, reason) in refused(args, &task) {
        if is_given {
            return Err(format!("{option} does not apply: {reason}"));
        }
    }
    Ok(task)
}

fn format(args: &ImportArgs) -> Result<FileFormat, String> {
    let Some(format) = args.format else {
        return FileFormat::of(&args.files).map_err(|reason| format!("{reason}, or say --format"));
    };
    Ok(format)
}

/// The options that do not apply to a task: whether each is given, its name, and the reason.
fn refused(args: &ImportArgs, task: &Task) -> Vec<(bool, &'static str, &'static str)> {
    let is_csv = !matches!(task, Task::Lines | Task::Table(_, FileFormat::Parquet | FileFormat::Lines));
    let is_device = matches!(task, Task::Devices(_));
    let is_lines = matches!(task, Task::Lines);
    let epoch = matches!(args.ts_format, Some(TimeFormat::Epoch(_)));
    let laid_out = is_device && args.ts_column.is_none();
    let mut refused = Vec::new();
    let mut refuse = |applies: bool, is_given: bool, option, reason| {
        if !applies {
            refused.push((is_given, option, reason));
        }
    };
    let columns = "lines say themselves what is a tag, a field and the time";
    refuse(
        is_lines,
        args.precision.is_some(),
        "--precision",
        "it is the unit of times of lines (--format lines); for columns there is --ts-format",
    );
    refuse(!is_lines, !args.tags.is_empty(), "--tag", columns);
    refuse(
        !is_device,
        !args.tags.is_empty(),
        "--tag",
        "a device's rows have one tag, the device; with --table there may be more",
    );
    refuse(!is_lines, args.ts_column.is_some(), "--ts-column", columns);
    refuse(!is_lines, args.ts_format.is_some(), "--ts-format", "the unit of times of lines is --precision");
    refuse(!is_lines, args.timezone.is_some(), "--timezone", "times of lines are numbers since 1970 UTC");
    refuse(
        !laid_out,
        args.ts_format.is_some(),
        "--ts-format",
        "no column has the time; name it with --ts-column",
    );
    refuse(
        !laid_out,
        args.timezone.is_some(),
        "--timezone",
        "no column has the time; --start has its offset with it",
    );
    refuse(!epoch, args.timezone.is_some(), "--timezone", "numbers since 1970 are UTC");
    refuse(
        args.timezone.is_some(),
        args.clock_change.is_some(),
        "--clock-change",
        "only local times may come twice or never; say with --timezone where they were written",
    );
    refuse(
        !args.timezone.as_ref().is_some_and(Zone::is_fixed),
        args.clock_change.is_some(),
        "--clock-change",
        "--timezone is an offset that never changes",
    );
    refuse(is_csv, args.delimiter.is_some(), "--delimiter", "it is for CSV files");
    refuse(is_csv, args.decimal.is_some(), "--decimal", "it is for CSV files");
    let times = "rows of tables have times of their own";
    refuse(is_device, args.start.is_some(), "--start", times);
    refuse(is_device, args.interval.is_some(), "--interval", times);
    refuse(args.ts_column.is_none(), args.start.is_some(), "--start", "--ts-column says when rows were");
    refuse(
        args.ts_column.is_none(),
        args.interval.is_some(),
        "--interval",
        "--ts-column says when rows were",
    );
    let one = matches!(task, Task::Devices(DeviceOf::Named(_)));
    refuse(one, args.token.is_some(), "--token", "it is the token of the one device that --device names");
    refuse(!args.create, args.token.is_some(), "--token", "--create makes devices, which needs a login");
    refuse(
        args.server.url.is_none() || is_device,
        args.create,
        "--create",
        "the server at --url is there, and tables are made by their rows",
    );
    refused
}

/// Refuses a file that is named twice: its rows would be counted twice.
pub(super) fn check_files(files: &[PathBuf]) -> Result<(), String> {
    for (at, file) in files.iter().enumerate() {
        if files[..at].contains(file) {
            return Err(format!("{} is named twice", file.display()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: ImportArgs,
    }

    fn asked(line: &str) -> Result<Task, String> {
        let words = std::iter::once("import").chain(line.split(' '));
        let line = Line::try_parse_from(words).map_err(|error| error.to_string())?;
        task(&line.args)
    }

    #[test]
    fn options_that_fit_together_are_accepted() {
        let table = |format| Ok(Task::Table("t".into(), format));
        for (line, expected) in [
            ("--device car a.csv", Ok(Task::Devices(DeviceOf::Named("car".into())))),
            (
                "--device car --start 2024-05-01T08:00:00Z --interval 2s a.csv",
                Ok(Task::Devices(DeviceOf::Named("car".into()))),
            ),
            (
                "--device car --token x --delimiter ; --decimal , a.csv",
                Ok(Task::Devices(DeviceOf::Named("car".into()))),
            ),
            ("--device-column car --ts-column t --ts-format ms a.csv", Ok(Task::Devices(DeviceOf::Column))),
            ("--create a.csv", Ok(Task::Devices(DeviceOf::FileName))),
            (
                "--create --device car --ts-column t --timezone Europe/Berlin a.csv",
                Ok(Task::Devices(DeviceOf::Named("car".into()))),
            ),
            (
                "--device car --ts-column t --timezone Europe/Berlin --clock-change later a.csv",
                Ok(Task::Devices(DeviceOf::Named("car".into()))),
            ),
            (
                "--table t --timezone Europe/Berlin --clock-change refuse a.parquet",
                table(FileFormat::Parquet),
            ),
            ("--table t a.csv", table(FileFormat::Csv)),
            ("--table t --create --tag a --tag b --ts-column c --ts-format s a.csv", table(FileFormat::Csv)),
            ("--table t --ts-column c --ts-format s a.parquet", table(FileFormat::Parquet)),
            ("--table t --format csv a.dat", table(FileFormat::Csv)),
            ("--format lines --precision ms a.txt", Ok(Task::Lines)),
            ("--any-time --lenient --json a.lp", Ok(Task::Lines)),
        ] {
            assert_eq!(asked(line), expected, "{line}");
        }
    }

    #[test]
    fn options_that_do_not_apply_are_refused_with_a_reason() {
        for (line, expected) in [
            ("a.csv", "--device NAME"),
            ("a.parquet", "--table"),
            ("--table t a.csv b.parquet", "different kinds"),
            ("--table t --format lines a.lp", "leave --table out"),
            ("--device car a.parquet", "data of devices come as CSV"),
            ("--device-column car --format lines a.lp", "data of devices come as CSV"),
            ("--device car --table t a.csv", "cannot be used with"),
            ("--device car --device-column t a.csv", "cannot be used with"),
            ("--device car --precision ms a.csv", "--ts-format"),
            ("--table t --precision ms a.csv", "--ts-format"),
            ("--device car --tag x a.csv", "with --table there may be more"),
            ("--device car --ts-format ms a.csv", "name it with --ts-column"),
            ("--device car --timezone UTC a.csv", "no column has the time"),
            ("--device car --ts-column t --ts-format ms --timezone UTC a.csv", "numbers since 1970 are UTC"),
            ("--device car --ts-column t --interval 1s a.csv", "--ts-column says when rows were"),
            (
                "--device car --ts-column t --start 2024-05-01T08:00:00Z a.csv",
                "--ts-column says when rows were",
            ),
            ("--table t --start 2024-05-01T08:00:00Z a.csv", "times of their own"),
            ("--table t --interval 1s a.csv", "times of their own"),
            ("--table t --token x a.csv", "token of the one device"),
            ("--device car --create --token x a.csv", "needs a login"),
            ("--table t --delimiter ; a.parquet", "for CSV files"),
            ("--decimal , a.lp", "for CSV files"),
            ("--tag x a.lp", "lines say themselves"),
            ("--ts-column t a.lp", "lines say themselves"),
            ("--ts-format s a.lp", "--precision"),
            ("--timezone UTC a.lp", "numbers since 1970"),
            ("--clock-change later a.lp", "say with --timezone"),
            ("--table t --clock-change later a.csv", "say with --timezone"),
            ("--table t --timezone UTC --clock-change later a.csv", "never changes"),
            ("--table t --timezone +02:00 --clock-change earlier a.csv", "never changes"),
            (
                "--table t --timezone Europe/Berlin --clock-change both a.csv",
                "possible values: refuse, earlier, later",
            ),
            ("--table t --create --url http://127.0.0.1:1 a.csv", "is there"),
            ("--strict --lenient --table t a.csv", "cannot be used with"),
            ("--table t --ts-format iso a.csv", "is not a format"),
            ("--table t --timezone Berlin a.csv", "is not a time zone"),
            ("--table t --delimiter xx a.csv", "cannot be between cells"),
            ("--device car --start 2024-05-01T08:00:00 a.csv", "with Z or an offset"),
        ] {
            let error = asked(line).map(|task| format!("{task:?}")).unwrap_err();
            assert!(error.contains(expected), "{line}: {error}");
        }
        assert!(check_files(&["a".into(), "b".into(), "a".into()]).unwrap_err().contains("named twice"));
    }
}
