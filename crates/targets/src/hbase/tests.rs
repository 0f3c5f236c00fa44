//! Answers of HBase 2.6.1 and its ZooKeeper, recorded from a table of PerformanceEvaluation with three regions
//! (`--rows=300 --presplit=3`). Each line of the file is a name and the bytes from the length field on.

use super::cell::Cells;
use super::exception::{Exception, Remedy};
use super::frame::{Answer, answer_bytes};
use super::messages::{
    GetActiveMasterResponse, GetClusterStatusResponse, GetMetaRegionLocationsResponse, GetRegionLoadResponse,
    GetResponse, GetTableDescriptorsResponse, MultiResponse, MutateResponse, ScanResponse,
};
use super::regions::RegionMap;
use super::zookeeper;

fn recorded(name: &str) -> Vec<u8> {
    let mut lines = include_str!("frames.txt").lines().filter_map(|line| line.split_once(' '));
    let (_, hex) = lines.find(|(known, _)| *known == name).unwrap();
    let digits: Vec<u8> = hex.chars().map(|digit| digit.to_digit(16).unwrap() as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

fn with_answer<T>(name: &str, read: impl FnOnce(Answer<'_>) -> T) -> T {
    let frame = recorded(name);
    assert_eq!(answer_bytes(&frame).unwrap(), Some(frame.len()));
    read(Answer::parse(&frame[4..]).unwrap().1.unwrap())
}

fn message<M: prost::Message + Default>(name: &str) -> M {
    with_answer(name, |answer| answer.message().unwrap())
}

#[test]
fn the_registry_names_its_servers() {
    let meta: GetMetaRegionLocationsResponse = message("GetMetaRegionLocations");
    let server = meta.meta_locations[0].server_name.as_ref().unwrap();
    assert_eq!((server.host_name.as_str(), server.port), ("localhost", Some(16_020)));
    let master: GetActiveMasterResponse = message("GetActiveMaster");
    assert_eq!(master.server_name.unwrap().port, Some(16_000));
    let status = message::<GetClusterStatusResponse>("GetClusterStatus").cluster_status;
    assert_eq!((status.hbase_version.unwrap().version.as_str(), status.servers_name.len()), ("2.6.1", 1));
    for (name, port) in [("zk-hbase-meta-region-server", 16_020), ("zk-hbase-master", 16_000)] {
        let frame = recorded(name);
        assert_eq!(zookeeper::answer_bytes(&frame).unwrap(), Some(frame.len()));
        let server = zookeeper::server(zookeeper::data(&frame[4..]).unwrap().unwrap()).unwrap();
        assert_eq!((server.host_name.as_str(), server.port), ("localhost", Some(port)));
    }
    assert_eq!(zookeeper::data(&recorded("zk-hbase-nothing")[4..]), Ok(None));
}

#[test]
fn the_regions_of_a_table_are_read_from_meta() {
    let regions = with_answer("Scan-meta", |answer| {
        let response: ScanResponse = answer.message().unwrap();
        assert_eq!(
            (response.cells_per_result, response.more_results_in_region),
            (vec![2, 2, 2], Some(false))
        );
        RegionMap::of_meta(Cells::new(answer.cells).map(Result::unwrap)).unwrap()
    });
    let starts: Vec<&[u8]> = regions.all().iter().map(|region| &region.start[..]).collect();
    assert_eq!(starts, [&b""[..], b"00000000000000000000000100", b"00000000000000000000000200"]);
    assert!(
        regions
            .of_row(b"00000000000000000000000150")
            .name
            .starts_with(b"TestTable,00000000000000000000000100,")
    );
    assert_eq!(regions.servers()[0].to_string(), "localhost:16020");
    let table: GetTableDescriptorsResponse = message("GetTableDescriptors");
    assert_eq!(table.table_schema[0].column_families[0].name, b"info0");
    let loads: GetRegionLoadResponse = message("GetRegionLoad");
    // 300 rows by PerformanceEvaluation and 3 puts of the recording. The server also counts the put that it refused.
    let writes: u64 = loads.region_loads.iter().filter_map(|load| load.write_requests_count).sum();
    assert_eq!((loads.region_loads.len(), writes), (3, 303));
}

#[test]
fn rows_are_written_and_read() {
    assert_eq!(message::<MutateResponse>("Mutate").processed, Some(true));
    with_answer("Get", |answer| {
        let response: GetResponse = answer.message().unwrap();
        assert_eq!(response.result.unwrap().associated_cell_count, Some(1));
        let cells: Vec<_> = Cells::new(answer.cells).map(Result::unwrap).collect();
        assert_eq!(
            (cells.len(), cells[0].row, cells[0].value),
            (1, &b"00000000000000000000000005"[..], &b"AAAAAAAABBBB"[..])
        );
        assert_eq!((cells[0].family, cells[0].qualifier), (&b"info0"[..], &b"0"[..]));
    });
    with_answer("Get-missing", |answer| {
        assert!(answer.cells.is_empty());
        let result = answer.message::<GetResponse>().unwrap().result.unwrap_or_default();
        assert_eq!(result.associated_cell_count.unwrap_or(0), 0);
    });
}

#[test]
fn exceptions_say_what_to_do() {
    let of_call = |name: &str| -> Exception {
        let frame = recorded(name);
        Answer::parse(&frame[4..]).unwrap().1.unwrap_err()
    };
    let moved = of_call("NotServingRegion");
    assert_eq!((moved.short_class(), moved.remedy), ("NotServingRegionException", Remedy::Relocate));
    assert!(moved.message.contains("is not online on localhost,16020"), "{moved}");
    let missing = of_call("NoSuchColumnFamily");
    assert_eq!((missing.short_class(), missing.remedy), ("NoSuchColumnFamilyException", Remedy::GiveUp));
    let results = message::<MultiResponse>("Multi").region_action_result;
    let actions = &results[0].result_or_exception;
    let failed: Vec<u32> = actions
        .iter()
        .filter(|action| action.exception.is_some())
        .filter_map(|action| action.index)
        .collect();
    assert_eq!((actions.len(), failed), (2, vec![4]), "the second put has a family that the table lacks");
    let exception =
        Exception::of_action(actions.iter().find_map(|action| action.exception.as_ref()).unwrap());
    assert_eq!(exception.remedy, Remedy::GiveUp, "{exception}");
    let results = message::<MultiResponse>("Multi-not-serving").region_action_result;
    let exception = Exception::of_action(results[0].exception.as_ref().unwrap());
    assert_eq!(exception.remedy, Remedy::Relocate);
}

#[test]
fn a_recorded_answer_that_is_cut_off_is_refused() {
    for line in include_str!("frames.txt").lines().filter(|line| !line.starts_with("zk")) {
        let frame = recorded(line.split_once(' ').unwrap().0);
        for length in 0..frame.len() - 4 {
            // Some cuts leave a shorter message that is whole; none may panic.
            let _ = Answer::parse(&frame[4..4 + length])
                .map(|(_, answer)| answer.map(|a| Cells::new(a.cells).count()));
        }
    }
}
