//! A scripted server of HBase: registry, master, `hbase:meta` and a table with one region in memory, on one port. It is
//! written apart from the driver, with a reader and a writer of messages of its own.

use std::collections::{BTreeMap, VecDeque};
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

const REGION: &[u8] = b"TestTable,,1700000000000.0123456789abcdef0123456789abcdef.";
const META_REGION: &[u8] = b"hbase:meta,,1";

/// What the server does instead of an answer.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Fault {
    /// It answers the call with an exception of this class. The flag states that the client must not retry.
    Call(&'static str, bool),
    /// It answers the first action of a call with an exception.
    Action(&'static str),
    /// It carries the call out and closes the connection.
    Close,
    /// It acknowledges a put that it does not keep.
    Forget,
}

#[derive(Debug, Default)]
struct State {
    faults: VecDeque<(&'static str, Fault)>,
    rows: BTreeMap<Vec<u8>, Vec<u8>>,
    reads: u64,
    writes: u64,
    meta_scans: u64,
}

/// The server. Its threads end with the test's process.
#[derive(Debug)]
pub(crate) struct HbaseServer {
    port: u16,
    state: Arc<Mutex<State>>,
}

impl HbaseServer {
    /// Starts a server that shows the faults, each once, at calls of their methods.
    pub(crate) fn start(faults: &[(&'static str, Fault)]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = State { faults: faults.iter().copied().collect(), ..State::default() };
        let state = Arc::new(Mutex::new(state));
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&shared);
                thread::spawn(move || serve(stream, port, &shared));
            }
        });
        Self { port, state }
    }

    pub(crate) fn url(&self) -> String {
        format!("hbase+rpc://127.0.0.1:{}", self.port)
    }

    pub(crate) fn rows(&self) -> usize {
        self.state.lock().unwrap().rows.len()
    }

    /// The number of puts that the server counted.
    pub(crate) fn writes(&self) -> u64 {
        self.state.lock().unwrap().writes
    }

    pub(crate) fn meta_scans(&self) -> u64 {
        self.state.lock().unwrap().meta_scans
    }

    pub(crate) fn faults_left(&self) -> usize {
        self.state.lock().unwrap().faults.len()
    }
}

/// Serves one connection until the client or a fault closes it.
fn serve(mut stream: TcpStream, port: u16, state: &Mutex<State>) -> Option<()> {
    let mut preamble = [0; 6];
    stream.read_exact(&mut preamble).ok()?;
    assert_eq!(&preamble, b"HBas\0\x50");
    frame(&mut stream)?;
    loop {
        let call = Call::parse(&frame(&mut stream)?);
        let mut state = state.lock().unwrap();
        let is_meta =
            call.message.bytes(1).is_some_and(|region| Message(region).bytes(2) == Some(META_REGION));
        let hit = !is_meta && state.faults.front().is_some_and(|(method, _)| *method == call.method);
        let fault = if hit { state.faults.pop_front().map(|(_, fault)| fault) } else { None };
        let (header, body, cells) = match fault {
            Some(Fault::Call(class, final_)) => {
                let text = format!("{class}: scripted\n\tat nowhere");
                let exception =
                    [field(1, class.as_bytes()), field(2, text.as_bytes()), number(5, final_.into())]
                        .concat();
                (field(2, &exception), None, Vec::new())
            }
            other => {
                let (body, cells) = answer(&call, port, &mut state, other);
                (field(3, &number(1, cells.len() as u64)), Some(body), cells)
            }
        };
        if matches!(fault, Some(Fault::Close)) {
            return None;
        }
        drop(state);
        let header = [number(1, call.id), header].concat();
        let mut out = [varint(header.len() as u64), header].concat();
        if let Some(body) = body {
            out.extend([varint(body.len() as u64), body].concat());
        }
        out.extend(cells);
        stream.write_all(&[&(out.len() as u32).to_be_bytes()[..], &out].concat()).ok()?;
    }
}

/// The message and the cell block of an answer.
fn answer(call: &Call, port: u16, state: &mut State, fault: Option<Fault>) -> (Vec<u8>, Vec<u8>) {
    let server = [field(1, b"127.0.0.1"), number(2, port.into())].concat();
    let table = [field(1, b"default"), field(2, b"TestTable")].concat();
    let info = [number(1, 1_700_000_000_000), field(2, &table), field(3, b""), field(4, b"")].concat();
    let region = [number(1, 1), field(2, REGION)].concat();
    let message = match call.method.as_str() {
        "GetActiveMaster" => field(1, &server),
        "GetMetaRegionLocations" => field(1, &[field(1, &info), field(2, &server), number(3, 0)].concat()),
        "GetClusterStatus" => field(1, &[field(1, &field(1, b"2.6.1")), field(11, &server)].concat()),
        "GetTableDescriptors" => field(1, &[field(1, &table), field(3, &field(1, b"info0"))].concat()),
        "CreateTable" | "DisableTable" => number(1, 7),
        "DeleteTable" => {
            state.rows.clear();
            number(1, 7)
        }
        "getProcedureResult" => number(1, 2),
        "FlushRegion" => Vec::new(),
        "GetRegionLoad" => {
            field(1, &[field(1, &region), number(8, state.reads), number(9, state.writes)].concat())
        }
        "Mutate" => {
            put(state, &call.cells, matches!(fault, Some(Fault::Forget)));
            number(2, 1)
        }
        "Get" => {
            let get = Message(call.message.bytes(2).unwrap());
            let row = get.bytes(1).unwrap();
            state.reads += 1;
            let cells = state.rows.get(row).cloned().unwrap_or_default();
            return (field(1, &number(2, u64::from(!cells.is_empty()))), cells);
        }
        "Scan" => return scan(call, state, &info, port),
        "Multi" => return multi(call, state, fault),
        other => panic!("the scripted server does not know {other}"),
    };
    (message, Vec::new())
}

fn put(state: &mut State, cells: &[u8], is_forgotten: bool) {
    for cell in split(cells) {
        state.writes += 1;
        if !is_forgotten {
            state.rows.insert(row_of(&cell).to_vec(), cell);
        }
    }
}

fn scan(call: &Call, state: &mut State, info: &[u8], port: u16) -> (Vec<u8>, Vec<u8>) {
    let region = Message(call.message.bytes(1).unwrap());
    if region.bytes(2).unwrap() == META_REGION {
        state.meta_scans += 1;
        let server = format!("127.0.0.1:{port}");
        let cells = [
            cell(REGION, b"regioninfo", &[&b"PBUF"[..], info].concat()),
            cell(REGION, b"server", server.as_bytes()),
        ];
        return ([number(1, 2), number(3, 0)].concat(), cells.concat());
    }
    let scan = Message(call.message.bytes(2).unwrap());
    let start = scan.bytes(3).unwrap_or_default();
    let stop = scan.bytes(4).unwrap_or_default();
    let within = |row: &Vec<u8>| row.as_slice() >= start && (stop.is_empty() || row.as_slice() < stop);
    let cells: Vec<Vec<u8>> =
        state.rows.iter().filter(|(row, _)| within(row)).map(|(_, cell)| cell.clone()).collect();
    state.reads += cells.len() as u64;
    let counts: Vec<u8> = cells.iter().flat_map(|_| number(1, 1)).collect();
    ([counts, number(2, 5), number(3, 0)].concat(), cells.concat())
}

fn multi(call: &Call, state: &mut State, fault: Option<Fault>) -> (Vec<u8>, Vec<u8>) {
    let mut of_put = split(&call.cells).into_iter();
    let (mut results, mut cells) = (Vec::new(), Vec::new());
    let region = Message(call.message.bytes(1).unwrap());
    for (position, action) in region.all(3).into_iter().enumerate() {
        let action = Message(action);
        let index = number(1, action.number(1).unwrap_or(0));
        let mut result = Vec::new();
        if let Some(get) = action.bytes(3) {
            state.reads += 1;
            let found = state.rows.get(Message(get).bytes(1).unwrap()).cloned().unwrap_or_default();
            result = number(2, u64::from(!found.is_empty()));
            cells.extend(found);
        } else {
            let cell = of_put.next().unwrap();
            if let (Some(Fault::Action(class)), 0) = (fault, position) {
                let exception = [field(1, class.as_bytes()), field(2, b"scripted")].concat();
                results.extend(field(1, &[index, field(3, &exception)].concat()));
                continue;
            }
            put(state, &cell, false);
        }
        results.extend(field(1, &[index, field(2, &result)].concat()));
    }
    (field(1, &results), cells)
}

struct Call {
    id: u64,
    method: String,
    message: Message<Vec<u8>>,
    cells: Vec<u8>,
}

impl Call {
    fn parse(frame: &[u8]) -> Self {
        let (length, rest) = read_varint(frame);
        let (header, rest) = rest.split_at(length as usize);
        let header = Message(header);
        let (length, rest) = read_varint(rest);
        let (message, cells) = rest.split_at(length as usize);
        let method = String::from_utf8(header.bytes(3).unwrap().to_vec()).unwrap();
        let promised = header.bytes(5).and_then(|meta| Message(meta).number(1)).unwrap_or(0);
        assert_eq!(promised, cells.len() as u64, "{method}");
        Self {
            id: header.number(1).unwrap(),
            method,
            message: Message(message.to_vec()),
            cells: cells.to_vec(),
        }
    }
}

fn frame(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let mut length = [0; 4];
    stream.read_exact(&mut length).ok()?;
    let mut frame = vec![0; u32::from_be_bytes(length) as usize];
    stream.read_exact(&mut frame).ok()?;
    Some(frame)
}

/// The fields of a message.
struct Message<B>(B);

impl<B: AsRef<[u8]>> Message<B> {
    /// The fields of a number: the value of varints, and the bytes of others.
    fn fields(&self, wanted: u64) -> Vec<(u64, &[u8])> {
        let mut rest = self.0.as_ref();
        let mut found = Vec::new();
        while !rest.is_empty() {
            let (key, after) = read_varint(rest);
            let (value, after) = read_varint(after);
            let bytes = if key & 7 == 2 { value as usize } else { 0 };
            assert!(matches!(key & 7, 0 | 2), "the driver writes no other types");
            let (content, after) = after.split_at(bytes);
            if key >> 3 == wanted {
                found.push((value, content));
            }
            rest = after;
        }
        found
    }

    fn all(&self, wanted: u64) -> Vec<&[u8]> {
        self.fields(wanted).into_iter().map(|(_, content)| content).collect()
    }

    fn bytes(&self, wanted: u64) -> Option<&[u8]> {
        self.fields(wanted).last().map(|(_, content)| *content)
    }

    fn number(&self, wanted: u64) -> Option<u64> {
        self.fields(wanted).last().map(|(value, _)| *value)
    }
}

fn read_varint(bytes: &[u8]) -> (u64, &[u8]) {
    let end = bytes.iter().position(|byte| byte & 0x80 == 0).unwrap();
    let bits = |value: u64, byte: &u8| value << 7 | u64::from(byte & 0x7f);
    (bytes[..=end].iter().rev().fold(0, bits), &bytes[end + 1..])
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    while value > 0x7f {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
    out
}

fn field(tag: u64, content: &[u8]) -> Vec<u8> {
    [varint(tag << 3 | 2), varint(content.len() as u64), content.to_vec()].concat()
}

fn number(tag: u64, value: u64) -> Vec<u8> {
    [varint(tag << 3), varint(value)].concat()
}

/// The cells of a block, each with its length.
fn split(mut block: &[u8]) -> Vec<Vec<u8>> {
    let mut cells = Vec::new();
    while let Some(length) = block.first_chunk::<4>() {
        let (cell, rest) = block.split_at(4 + u32::from_be_bytes(*length) as usize);
        cells.push(cell.to_vec());
        block = rest;
    }
    cells
}

fn row_of(cell: &[u8]) -> &[u8] {
    let length = u16::from_be_bytes([cell[12], cell[13]]) as usize;
    &cell[14..14 + length]
}

fn cell(row: &[u8], qualifier: &[u8], value: &[u8]) -> Vec<u8> {
    let key = [&(row.len() as u16).to_be_bytes()[..], row, b"\x04info", qualifier, &[0; 8], &[4]].concat();
    let lengths = [key.len() as u32, value.len() as u32].map(u32::to_be_bytes).concat();
    let cell = [&lengths[..], &key, value].concat();
    [&(cell.len() as u32).to_be_bytes()[..], &cell].concat()
}
