//! A scan of one region: the call that opens a scanner, and those that fetch the next rows.

use super::cell::put_cell;
use super::connection::{CallError, Connection};
use super::messages::{CellResult, ScanRequest, ScanResponse};

/// How a scan continues after an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ScanStep {
    /// The region has more rows.
    More,
    /// The region has no more rows, the table may.
    RegionEnds,
    /// The scan is over.
    Over,
}

/// The state of a scan of one region.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RegionScan {
    scanner: Option<u64>,
    next_call: u64,
    caching: u32,
}

impl RegionScan {
    /// A scan that fetches up to `caching` rows per call.
    pub(super) fn new(caching: u32) -> Self {
        Self { scanner: None, next_call: 0, caching }
    }

    /// Carries out the next call and appends the cells of its answer to `block`. `open` opens the scanner.
    pub(super) fn step(
        &mut self,
        connection: &mut Connection,
        open: &ScanRequest,
        block: &mut Vec<u8>,
    ) -> Result<ScanStep, CallError> {
        let mut request = match self.scanner {
            None => open.clone(),
            Some(_) => ScanRequest {
                scanner_id: self.scanner,
                next_call_seq: Some(self.next_call),
                ..ScanRequest::default()
            },
        };
        request.number_of_rows = Some(self.caching);
        request.client_handles_partials = Some(true);
        request.client_handles_heartbeats = Some(true);
        request.close_scanner = Some(false);
        connection.send("Scan", &request, &[])?;
        let answer = connection.receive()?;
        let response: ScanResponse = answer.message().map_err(CallError::Lost)?;
        block.extend_from_slice(answer.cells);
        response.results.iter().for_each(|result| append(block, result));
        if self.scanner.is_some() {
            self.next_call += 1;
        }
        self.scanner = response.scanner_id.or(self.scanner);
        Ok(step_of(&response))
    }
}

fn step_of(response: &ScanResponse) -> ScanStep {
    match (response.more_results, response.more_results_in_region) {
        (Some(false), _) => ScanStep::Over,
        (_, Some(false)) => ScanStep::RegionEnds,
        // Servers before 1.1 do not say it: their region ends with an answer without rows.
        (_, None) if response.cells_per_result.is_empty() && response.results.is_empty() => {
            ScanStep::RegionEnds
        }
        _ => ScanStep::More,
    }
}

/// Appends the cells of a message to a block.
pub(super) fn append(block: &mut Vec<u8>, result: &CellResult) {
    for cell in &result.cell {
        let of = |field: &Option<Vec<u8>>| field.clone().unwrap_or_default();
        let (family, qualifier) = (of(&cell.family), of(&cell.qualifier));
        let value = of(&cell.value);
        put_cell(block, &of(&cell.row), (&family, &qualifier), |out| out.extend_from_slice(&value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_says_how_the_scan_continues() {
        let step = |more_results, more_results_in_region, rows: usize| {
            let cells_per_result = vec![1; rows];
            step_of(&ScanResponse {
                more_results,
                more_results_in_region,
                cells_per_result,
                ..ScanResponse::default()
            })
        };
        assert_eq!(step(Some(true), Some(true), 0), ScanStep::More, "a heartbeat without rows");
        assert_eq!(step(Some(true), Some(false), 3), ScanStep::RegionEnds);
        assert_eq!(step(Some(false), Some(true), 3), ScanStep::Over);
        assert_eq!((step(Some(true), None, 3), step(None, None, 0)), (ScanStep::More, ScanStep::RegionEnds));
    }
}
