//! Puts: one by one, or as many as a client buffer holds in a call per region server.

use std::collections::BTreeMap;
use std::sync::Arc;

use load::protocol::Failure;

use super::cell::put_cell;
use super::connection::{CallError, Connection, Server};
use super::exception::Exception;
use super::messages::{
    Action, MultiRequest, MultiResponse, MutateRequest, MutateResponse, Mutation, PUT, RegionAction,
    RegionActionResult, RegionSpecifier, SKIP_WAL, SYNC_WAL,
};
use super::operation::Operation;
use super::regions::Region;
use super::rows::Dataset;
use super::session::{Attempts, Expected, Session, Work};

/// The qualifier of the only column.
pub(super) const QUALIFIER: &[u8] = b"0";

/// The puts of one operation.
#[derive(Debug)]
struct Puts<'a> {
    data: &'a Dataset,
    durability: i32,
    numbers: Vec<u64>,
    rows: Vec<Vec<u8>>,
    letters: Vec<u8>,
}

/// The puts that go to one region, by index.
type OfRegions<'a> = BTreeMap<&'a [u8], (&'a Region, Vec<usize>)>;

impl Puts<'_> {
    fn mutation(&self, index: usize) -> Mutation {
        Mutation {
            row: Some(self.rows[index].clone()),
            mutate_type: Some(PUT),
            durability: Some(self.durability),
            associated_cell_count: Some(1),
        }
    }

    fn append_cell(&self, index: usize, cells: &mut Vec<u8>) {
        let count = self.data.letters();
        let letters = &self.letters[index * count..(index + 1) * count];
        put_cell(cells, &self.rows[index], (self.data.family.as_bytes(), QUALIFIER), |out| {
            self.data.value(letters, out);
        });
    }

    fn send(
        &self,
        link: &mut Connection,
        regions: &OfRegions<'_>,
        cells: &mut Vec<u8>,
    ) -> Result<(), CallError> {
        cells.clear();
        let mut request = MultiRequest::default();
        for (name, (_, indexes)) in regions {
            let action = |index: &usize| {
                self.append_cell(*index, cells);
                Action { index: Some(*index as u32), mutation: Some(self.mutation(*index)), get: None }
            };
            let action = indexes.iter().map(action).collect();
            request.region_action.push(RegionAction { region: RegionSpecifier::named(name), action });
        }
        link.send("Multi", &request, cells)
    }
}

impl Session {
    /// Writes the next rows. Returns their number.
    pub(super) fn write(&mut self, work: &Work<'_>, operation: &Operation) -> Result<u64, Failure> {
        let count = self.take(operation.batch.into());
        let puts = self.draw_puts(work, operation, count);
        let outcome = match puts.rows.len() {
            1 => self.put(work, &puts),
            _ => self.put_all(work, &puts),
        };
        self.expected = Expected::Nothing;
        outcome.map(|()| count)
    }

    fn draw_puts<'a>(&mut self, work: &Work<'a>, operation: &Operation, count: u64) -> Puts<'a> {
        let data = work.data;
        let durability = if operation.wal { SYNC_WAL } else { SKIP_WAL };
        let mut puts = Puts { data, durability, numbers: Vec::new(), rows: Vec::new(), letters: Vec::new() };
        for _ in 0..count {
            let number = self.draw_row(work, operation);
            let mut row = Vec::with_capacity(data.row_bytes);
            data.row(number, &mut row);
            data.draw(number, &mut self.random, &mut puts.letters);
            puts.numbers.push(number);
            puts.rows.push(row);
        }
        puts
    }

    fn put(&mut self, work: &Work<'_>, puts: &Puts<'_>) -> Result<(), Failure> {
        let mut cells = Vec::new();
        puts.append_cell(0, &mut cells);
        let answer: MutateResponse = self.at_region(work, &puts.rows[0], |link, region| {
            let request =
                MutateRequest { region: RegionSpecifier::named(&region.name), mutation: puts.mutation(0) };
            link.send("Mutate", &request, &cells)?;
            link.receive()?.message().map_err(CallError::Lost)
        })?;
        if answer.processed == Some(false) {
            work.tally.add_refused();
            return Err(Failure::Refused("a put was not processed".to_owned()));
        }
        acknowledged(work, &puts.numbers);
        Ok(())
    }

    fn put_all(&mut self, work: &Work<'_>, puts: &Puts<'_>) -> Result<(), Failure> {
        let mut attempts = Attempts::new();
        let mut pending: Vec<usize> = (0..puts.rows.len()).collect();
        loop {
            let regions = Arc::clone(&self.regions);
            let mut by_server: BTreeMap<&Server, OfRegions<'_>> = BTreeMap::new();
            for index in std::mem::take(&mut pending) {
                let region = regions.of_row(&puts.rows[index]);
                let of_server = by_server.entry(&region.server).or_default();
                of_server.entry(&region.name).or_insert_with(|| (region, Vec::new())).1.push(index);
            }
            let failed = self.exchange(work, puts, &by_server);
            let Some((region, _, error)) = failed.iter().max_by_key(|(_, _, error)| is_final(error)) else {
                return Ok(());
            };
            self.recover(work, &mut attempts, region, error.clone())?;
            pending.extend(failed.iter().flat_map(|(_, indexes, _)| indexes));
            pending.sort_unstable();
        }
    }

    /// Sends the puts to all servers and then reads the answers of all. Returns those that failed.
    fn exchange<'r>(
        &mut self,
        work: &Work<'_>,
        puts: &Puts<'_>,
        by_server: &BTreeMap<&Server, OfRegions<'r>>,
    ) -> Vec<(&'r Region, Vec<usize>, CallError)> {
        let mut failed = Vec::new();
        let mut cells = std::mem::take(&mut self.answers);
        let sent: Vec<Result<(), CallError>> = by_server
            .iter()
            .map(|(server, regions)| {
                self.link(work, server).and_then(|link| puts.send(link, regions, &mut cells))
            })
            .collect();
        self.answers = cells;
        for ((server, regions), sent) in by_server.iter().zip(sent) {
            let answer = sent.and_then(|()| {
                let answer = self.link(work, server)?.receive()?;
                answer.message::<MultiResponse>().map_err(CallError::Lost)
            });
            let answer = answer.and_then(|answer| match answer.region_action_result {
                results if results.len() == regions.len() => Ok(results),
                results => {
                    Err(CallError::Lost(format!("{} results for {} regions", results.len(), regions.len())))
                }
            });
            match answer {
                Ok(results) => {
                    for ((region, indexes), result) in regions.values().zip(results) {
                        let (done, wrong) = outcome(indexes, &result);
                        let numbers: Vec<u64> = done.iter().map(|index| puts.numbers[*index]).collect();
                        acknowledged(work, &numbers);
                        failed.extend(wrong.map(|(indexes, error)| (*region, indexes, error)));
                    }
                }
                Err(error) => {
                    let all = regions.values();
                    failed.extend(all.map(|(region, indexes)| (*region, indexes.clone(), error.clone())));
                }
            }
        }
        failed
    }
}

/// Splits the puts of a region into those that were acknowledged, and the others with the error of one of them.
fn outcome(indexes: &[usize], result: &RegionActionResult) -> (Vec<usize>, Option<(Vec<usize>, CallError)>) {
    if let Some(exception) = &result.exception {
        let error = CallError::Exception(Exception::of_action(exception));
        return (Vec::new(), Some((indexes.to_vec(), error)));
    }
    let mut of: BTreeMap<usize, Option<Exception>> = BTreeMap::new();
    for each in &result.result_or_exception {
        let exception = each.exception.as_ref().map(Exception::of_action);
        of.insert(each.index.unwrap_or(0) as usize, exception);
    }
    let (done, wrong): (Vec<usize>, Vec<usize>) =
        indexes.iter().partition(|index| matches!(of.get(index), Some(None)));
    let errors = wrong.iter().map(|index| match of.get(index) {
        Some(Some(exception)) => CallError::Exception(exception.clone()),
        _ => CallError::Lost("an answer has no result for one of the puts".to_owned()),
    });
    let worst = errors.max_by_key(is_final);
    (done, worst.map(|error| (wrong, error)))
}

fn is_final(error: &CallError) -> bool {
    matches!(error, CallError::Exception(exception) if exception.remedy == super::exception::Remedy::GiveUp)
}

fn acknowledged(work: &Work<'_>, rows: &[u64]) {
    work.tally.add_puts(rows.len() as u64);
    rows.iter().for_each(|row| work.written.add(*row));
}

#[cfg(test)]
mod tests {
    use super::super::messages::{NameBytesPair, ResultOrException};
    use super::*;

    fn result(index: u32, class: Option<&str>) -> ResultOrException {
        let exception = class.map(|class| NameBytesPair { name: class.to_owned(), value: None });
        ResultOrException { index: Some(index), result: None, exception }
    }

    #[test]
    fn every_put_of_a_call_needs_its_own_result() {
        let of = |results: Vec<ResultOrException>| {
            outcome(&[3, 7, 9], &RegionActionResult { result_or_exception: results, exception: None })
        };
        assert_eq!(of(vec![result(3, None), result(7, None), result(9, None)]), (vec![3, 7, 9], None));
        let (done, failed) = of(vec![result(9, None), result(7, Some("a.RegionTooBusyException"))]);
        let (indexes, error) = failed.unwrap();
        assert_eq!((done, indexes), (vec![9], vec![3, 7]));
        assert!(!is_final(&error));
        let (_, failed) = of(vec![
            result(3, Some("a.RegionTooBusyException")),
            result(7, Some("a.NoSuchColumnFamilyException")),
        ]);
        assert!(is_final(&failed.unwrap().1), "a final error goes first");
        assert!(matches!(of(Vec::new()).1.unwrap().1, CallError::Lost(_)));
    }

    #[test]
    fn an_exception_of_a_region_is_that_of_all_its_puts() {
        let exception = NameBytesPair { name: "a.NotServingRegionException".to_owned(), value: None };
        let result = RegionActionResult { result_or_exception: Vec::new(), exception: Some(exception) };
        let (done, failed) = outcome(&[1, 2], &result);
        assert_eq!((done, failed.unwrap().0), (Vec::new(), vec![1, 2]));
    }
}
