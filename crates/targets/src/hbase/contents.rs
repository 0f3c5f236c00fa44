//! Reads the whole table and compares it with the rows that were written.

use load::result::Check;

use super::cell::Cells;
use super::cluster::Cluster;
use super::connection::{CallError, Connection};
use super::messages::{RegionSpecifier, ScanRequest};
use super::read::scan_of_all;
use super::rows::Dataset;
use super::scanner::{RegionScan, ScanStep};
use super::tally::WrittenRows;

/// Rows per answer.
const CACHING: u32 = 1_000;

/// The rows of the table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Contents {
    pub(super) rows: u64,
    /// Those that were written.
    pub(super) written: u64,
    /// Rows with a wrong value or name, and what is wrong with the first.
    pub(super) wrong: u64,
    /// See [`Self::wrong`].
    pub(super) first_wrong: Option<String>,
}

/// Reads all rows, region by region.
pub(super) fn read(cluster: &Cluster, data: &Dataset, written: &WrittenRows) -> Result<Contents, String> {
    let mut contents = Contents::default();
    for region in cluster.regions()?.all() {
        let failed =
            |error: &dyn std::fmt::Display| format!("reading the table back from {}: {error}", region.server);
        let mut link =
            Connection::open(&region.server, "ClientService", cluster.silence).map_err(|e| failed(&e))?;
        let open = ScanRequest {
            region: Some(RegionSpecifier::named(&region.name)),
            scan: Some(scan_of_all(data, CACHING)),
            ..ScanRequest::default()
        };
        let (mut scan, mut block) = (RegionScan::new(CACHING), Vec::new());
        loop {
            let step: Result<ScanStep, CallError> = scan.step(&mut link, &open, &mut block);
            let step = step.map_err(|error| failed(&error))?;
            contents.add(data, written, &block).map_err(|why| failed(&why))?;
            block.clear();
            if step != ScanStep::More {
                break;
            }
        }
    }
    Ok(contents)
}

impl Contents {
    fn add(&mut self, data: &Dataset, written: &WrittenRows, block: &[u8]) -> Result<(), String> {
        let mut letters = Vec::new();
        for cell in Cells::new(block) {
            let cell = cell?;
            self.rows += 1;
            let right = match data.number(cell.row) {
                None => Err("a row is not in the data set".to_owned()),
                Some(number) => {
                    self.written += u64::from(written.has(number));
                    data.check_value(number, cell.value, &mut letters)
                }
            };
            if let Err(why) = right {
                self.wrong += 1;
                self.first_wrong.get_or_insert_with(|| format!("{}: {why}", cell.row.escape_ascii()));
            }
        }
        Ok(())
    }

    /// Compares the rows with those that were written.
    pub(super) fn checks(&self, written: u64) -> Vec<Check> {
        let check = |what: &str, expected: u64, found: u64, first: Option<&String>| Check {
            what: what.to_owned(),
            expected: expected.to_string(),
            found: first.map_or_else(|| found.to_string(), |first| format!("{found}, the first is {first}")),
            passed: expected == found,
        };
        vec![
            check("acknowledged rows that the table has", written, self.written, None),
            check("rows of the table with another value", 0, self.wrong, self.first_wrong.as_ref()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::super::cell::put_cell;
    use super::*;

    #[test]
    fn a_row_that_is_missing_or_differs_fails_a_check() {
        let data = Dataset { rows: 10, value_bytes: 20, row_bytes: 10, ..Dataset::default() };
        let written = WrittenRows::new(10);
        [1, 2, 3].into_iter().for_each(|row| written.add(row));
        let block = |rows: &[(u64, u64)]| {
            let mut block = Vec::new();
            for (row, value_of) in rows {
                let (mut name, mut letters) = (Vec::new(), Vec::new());
                data.row(*row, &mut name);
                data.draw(*value_of, &mut super::super::java_random::JavaRandom::new(1), &mut letters);
                put_cell(&mut block, &name, (b"info0", b"0"), |out| data.value(&letters, out));
            }
            block
        };
        let passed = |rows: &[(u64, u64)]| -> Vec<bool> {
            let mut contents = Contents::default();
            contents.add(&data, &written, &block(rows)).unwrap();
            contents.checks(written.count()).into_iter().map(|check| check.passed).collect()
        };
        assert_eq!(passed(&[(1, 1), (2, 2), (3, 3), (7, 7)]), [true, true], "an older row stays");
        assert_eq!(passed(&[(1, 1), (2, 2)]), [false, true]);
        assert_eq!(passed(&[(1, 1), (2, 3), (3, 3)]), [true, false]);
    }
}
