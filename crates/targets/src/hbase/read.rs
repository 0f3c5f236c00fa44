//! Gets and scans.

use std::sync::Arc;

use load::protocol::Failure;

use super::cell::Cells;
use super::connection::CallError;
use super::exception::Exception;
use super::messages::{
    Action, CellResult, Column, Filter, FilterList, Get, GetRequest, GetResponse, MUST_PASS_ALL,
    MultiRequest, MultiResponse, PageFilter, RegionAction, RegionSpecifier, Scan, ScanRequest,
    WhileMatchFilter,
};
use super::operation::{Operation, TestKind};
use super::rows::Dataset;
use super::scanner::{RegionScan, ScanStep, append};
use super::session::{Attempts, Expected, Session, Work};
use super::write::QUALIFIER;
use prost::Message as _;

/// The largest answer of a scan (`hbase.client.scanner.max.result.size`).
const SCAN_ANSWER_BYTES: u64 = 2 * 1024 * 1024;

/// Rows of a read: those that were found, and those that were not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct RowCounts {
    /// Rows with a cell.
    pub(super) hits: u64,
    /// Rows without one.
    pub(super) misses: u64,
}

fn columns(data: &Dataset) -> Vec<Column> {
    vec![Column { family: data.family.clone().into_bytes(), qualifier: vec![QUALIFIER.to_vec()] }]
}

/// The rows of a result. Its cells are in the block already, or are appended.
fn cells_of(result: Option<&CellResult>, block: &mut Vec<u8>) -> u64 {
    let Some(result) = result else { return 0 };
    append(block, result);
    u64::from(result.associated_cell_count.unwrap_or(0).unsigned_abs()) + result.cell.len() as u64
}

impl Session {
    /// Reads the next rows with gets.
    pub(super) fn get(&mut self, work: &Work<'_>, operation: &Operation) -> Result<RowCounts, Failure> {
        let count = self.take(operation.batch.into());
        let numbers: Vec<u64> = (0..count).map(|_| self.draw_row(work, operation)).collect();
        let mut block = std::mem::take(&mut self.answers);
        block.clear();
        let mut hits = 0;
        // A batch is sorted by region, so the order of its cells is that of the rows.
        let mut sorted = numbers;
        sorted.sort_unstable();
        let mut rest = &sorted[..];
        while let Some(first) = rest.first() {
            let mut row = Vec::new();
            work.data.row(*first, &mut row);
            let read = self.get_at(work, operation, (&row, rest), &mut block);
            match read {
                Ok((rows, found)) => {
                    work.tally.add_gets(rows as u64);
                    hits += found;
                    rest = &rest[rows..];
                }
                Err(failure) => {
                    self.answers = block;
                    self.expected = Expected::Nothing;
                    return Err(failure);
                }
            }
        }
        self.answers = block;
        self.expected = Expected::Rows(sorted);
        Ok(RowCounts { hits, misses: count.saturating_sub(hits) })
    }

    /// Reads those of the first rows that are in one region. Returns the number of rows, and of those found.
    fn get_at(
        &mut self,
        work: &Work<'_>,
        operation: &Operation,
        (row, numbers): (&[u8], &[u64]),
        block: &mut Vec<u8>,
    ) -> Result<(usize, u64), Failure> {
        let data = work.data;
        let get = |number: u64| {
            let mut row = Vec::with_capacity(data.row_bytes);
            data.row(number, &mut row);
            Get { row, column: columns(data), cache_blocks: Some(operation.cache_blocks) }
        };
        let began = block.len();
        self.at_region(work, row, |link, region| {
            block.truncate(began);
            let name = RegionSpecifier::named(&region.name);
            if operation.batch == 1 {
                link.send("Get", &GetRequest { region: name, get: get(numbers[0]) }, &[])?;
                let answer = link.receive()?;
                block.extend_from_slice(answer.cells);
                let response: GetResponse = answer.message().map_err(CallError::Lost)?;
                return Ok((1, cells_of(response.result.as_ref(), block)));
            }
            let end = |number: &u64| region.end.is_empty() || get(*number).row < region.end;
            let count = numbers.iter().take_while(|number| end(number)).count().max(1);
            let action = |(index, number): (usize, &u64)| Action {
                index: Some(index as u32),
                mutation: None,
                get: Some(get(*number)),
            };
            let action = numbers[..count].iter().enumerate().map(action).collect();
            let request = MultiRequest { region_action: vec![RegionAction { region: name, action }] };
            link.send("Multi", &request, &[])?;
            let answer = link.receive()?;
            block.extend_from_slice(answer.cells);
            let response: MultiResponse = answer.message().map_err(CallError::Lost)?;
            found(&response, count, block).map(|hits| (count, hits))
        })
    }

    /// Scans rows from a random one on, as the operation says.
    pub(super) fn scan(&mut self, work: &Work<'_>, operation: &Operation) -> Result<RowCounts, Failure> {
        self.take(1);
        let data = work.data;
        let start = data.random_row(&mut self.random);
        let (stop, wanted) = match operation.kind {
            TestKind::ScanRange => (Some(start + operation.range), operation.range),
            _ => (None, operation.page.into()),
        };
        let mut scan = scan_of(data, operation);
        let mut row = Vec::new();
        data.row(start, &mut row);
        scan.start_row = Some(row);
        scan.stop_row = stop.map(|stop| {
            let mut row = Vec::new();
            data.row(stop, &mut row);
            row
        });
        let mut block = std::mem::take(&mut self.answers);
        block.clear();
        let scanned = self.scan_regions(work, &mut scan, operation.caching, &mut block);
        self.answers = block;
        let hits = scanned?;
        self.expected = Expected::Range(start, stop.unwrap_or(u64::MAX));
        work.tally.add_scanned(hits);
        let wanted = wanted.min(data.rows - start);
        Ok(RowCounts { hits, misses: wanted.saturating_sub(hits) })
    }

    /// Scans region after region. `scan` begins after the last row that has arrived. Returns the number of rows.
    pub(super) fn scan_regions(
        &mut self,
        work: &Work<'_>,
        scan: &mut Scan,
        caching: u32,
        block: &mut Vec<u8>,
    ) -> Result<u64, Failure> {
        let mut rows = 0;
        let mut attempts = Attempts::new();
        loop {
            let regions = Arc::clone(&self.regions);
            let region = regions.of_row(scan.start_row.as_deref().unwrap_or_default());
            let open = ScanRequest {
                region: Some(RegionSpecifier::named(&region.name)),
                scan: Some(scan.clone()),
                ..ScanRequest::default()
            };
            let began = block.len();
            let mut scanner = RegionScan::new(caching);
            let ended = loop {
                let link = self.link(work, &region.server);
                match link.and_then(|link| scanner.step(link, &open, block)) {
                    Ok(ScanStep::More) => {}
                    Ok(step) => break Ok(step),
                    Err(error) => break Err(error),
                }
            };
            let (count, last) = last_row(&block[began..]).map_err(|why| {
                work.tally.add_refused();
                Failure::Refused(why)
            })?;
            rows += count;
            match ended {
                Ok(step) => {
                    work.tally.add_scan();
                    let is_past = scan.stop_row.as_ref().is_some_and(|stop| region.end >= *stop);
                    if step == ScanStep::Over || region.end.is_empty() || is_past {
                        return Ok(rows);
                    }
                    scan.start_row = Some(region.end.clone());
                    attempts = Attempts::new();
                }
                Err(error) => {
                    if let Some(mut next) = last {
                        // The smallest row after the last.
                        next.push(0);
                        scan.start_row = Some(next);
                    }
                    self.recover(work, &mut attempts, region, error)?;
                }
            }
        }
    }

    /// Compares the cells of the latest operation with what was asked for.
    pub(super) fn check(&self, data: &Dataset) -> Result<(), String> {
        let mut letters = Vec::new();
        let mut asked = match &self.expected {
            Expected::Nothing => return Ok(()),
            Expected::Rows(rows) => rows.iter(),
            Expected::Range(..) => [].iter(),
        };
        let mut last = None;
        for cell in Cells::new(&self.answers) {
            let cell = cell?;
            let number = data.number(cell.row).ok_or("an answer has a row that is not in the data set")?;
            let is_right = match &self.expected {
                Expected::Range(start, stop) => {
                    (*start..*stop).contains(&number) && last.is_none_or(|last| last < number)
                }
                _ => asked.any(|asked| *asked == number),
            };
            if !is_right || cell.family != data.family.as_bytes() || cell.qualifier != QUALIFIER {
                return Err("an answer has a cell that was not asked for".to_owned());
            }
            last = Some(number);
            data.check_value(number, cell.value, &mut letters)?;
        }
        Ok(())
    }
}

/// A scan with the filter of its kind, without bounds.
fn scan_of(data: &Dataset, operation: &Operation) -> Scan {
    let filter = (operation.kind == TestKind::RandomSeekScan).then(|| page_filter(operation.page));
    Scan {
        column: columns(data),
        filter,
        cache_blocks: Some(operation.cache_blocks),
        max_result_size: Some(SCAN_ANSWER_BYTES),
        caching: Some(operation.caching),
        ..Scan::default()
    }
}

/// A scan of the whole table.
pub(super) fn scan_of_all(data: &Dataset, caching: u32) -> Scan {
    Scan {
        column: columns(data),
        start_row: Some(Vec::new()),
        cache_blocks: Some(false),
        max_result_size: Some(SCAN_ANSWER_BYTES),
        caching: Some(caching),
        ..Scan::default()
    }
}

/// The filter of `randomSeekScan`: a list with a page that ends the scan when it is full.
fn page_filter(rows: u32) -> Filter {
    let filter = |name: &str, message: Vec<u8>| Filter {
        name: format!("org.apache.hadoop.hbase.filter.{name}"),
        serialized_filter: Some(message),
    };
    let page = filter("PageFilter", PageFilter { page_size: rows.into() }.encode_to_vec());
    let whole = filter("WhileMatchFilter", WhileMatchFilter { filter: page }.encode_to_vec());
    filter("FilterList", FilterList { operator: MUST_PASS_ALL, filters: vec![whole] }.encode_to_vec())
}

/// The rows of a call of `count` gets in one region that were found.
fn found(response: &MultiResponse, count: usize, block: &mut Vec<u8>) -> Result<u64, CallError> {
    let result = response.region_action_result.first();
    let result = result.ok_or_else(|| CallError::Lost("an answer has no results".to_owned()))?;
    let all = result.result_or_exception.iter().filter_map(|each| each.exception.as_ref());
    if let Some(exception) = result.exception.iter().chain(all).next() {
        return Err(CallError::Exception(Exception::of_action(exception)));
    }
    if result.result_or_exception.len() != count {
        return Err(CallError::Lost(format!(
            "{} results for {count} gets",
            result.result_or_exception.len()
        )));
    }
    Ok(result.result_or_exception.iter().map(|each| cells_of(each.result.as_ref(), block)).sum())
}

/// The number of rows in a block, and the last one.
fn last_row(block: &[u8]) -> Result<(u64, Option<Vec<u8>>), String> {
    let (mut rows, mut last) = (0, None);
    for cell in Cells::new(block) {
        let row = cell?.row;
        rows += u64::from(last != Some(row));
        last = Some(row);
    }
    Ok((rows, last.map(<[u8]>::to_vec)))
}
