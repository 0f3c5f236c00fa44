//! Tests of the requests of clients, and of their checks of answers.

use super::*;

fn group(commands: &[(&str, u32, Pattern)]) -> GroupConfig {
    let command = |&(text, ratio, pattern): &(&str, u32, Pattern)| Command {
        class: if text.starts_with("SET") { 0 } else { 1 },
        text: text.to_owned(),
        ratio,
        pattern,
    };
    GroupConfig {
        connections: 4,
        commands: commands.iter().map(command).collect(),
        keys: Keys {
            prefix: "k-".to_owned(),
            min: 10,
            max: 29,
            deviation: None,
            median: None,
            exponent: 1.0,
        },
        size: Size::Fixed(3),
        content: Content::MemtierX,
        requests: Some(6),
        distinct_seeds: false,
        seed: 0,
    }
}

fn sent(driver: &Redis, number: u32) -> Vec<String> {
    let mut session = driver.session(number);
    let mut texts = Vec::new();
    loop {
        let mut out = Vec::new();
        if driver.start(&mut session, DueTime { intended_ns: 0, wall_ms: 0, sent_ns: 0 }, &mut out).is_none()
        {
            return texts;
        }
        let mut words = Vec::new();
        let mut offset = 0;
        while let Some((found, length)) = wire::resp::token(&out, offset).unwrap() {
            offset += length;
            if let Token::Bulk(text) = found {
                words.push(String::from_utf8(text.to_vec()).unwrap());
            }
        }
        assert_eq!(offset, out.len());
        texts.push(words.join(" "));
    }
}

#[test]
fn ratios_are_kept_in_order_and_keys_are_counted_per_command() {
    let commands =
        [("SET __key__ __data__", 1, Pattern::Sequential), ("GET __key__", 2, Pattern::Sequential)];
    let driver = Redis::new(vec![group(&commands)], Login::default()).unwrap();
    let expected = ["SET k-10 xxx", "GET k-10", "GET k-11", "SET k-11 xxx", "GET k-12", "GET k-13"];
    assert_eq!(sent(&driver, 0), expected);
    assert_eq!(sent(&driver, 3), expected, "every client walks the same range");
}

#[test]
fn parallel_clients_have_ranges_of_their_own() {
    let driver = Redis::new(vec![group(&[("GET __key__", 1, Pattern::Parallel)])], Login::default()).unwrap();
    assert_eq!(sent(&driver, 0), ["GET k-10", "GET k-11", "GET k-12", "GET k-13", "GET k-14", "GET k-10"]);
    assert_eq!(sent(&driver, 3)[0], "GET k-25");
}

#[test]
fn clients_draw_the_same_numbers_unless_seeds_differ() {
    let mut config = group(&[("GET __key__", 1, Pattern::Random)]);
    let same = Redis::new(vec![config.clone()], Login::default()).unwrap();
    assert_eq!(sent(&same, 0), sent(&same, 1));
    config.distinct_seeds = true;
    let distinct = Redis::new(vec![config], Login::default()).unwrap();
    assert_ne!(sent(&distinct, 0), sent(&distinct, 1));
    assert_eq!(sent(&distinct, 0), sent(&same, 0), "the first client has the same seed in both");
}

fn status(command: &str, answers: &[u8]) -> Vec<String> {
    let driver = Redis::new(vec![group(&[(command, 1, Pattern::Random)])], Login::default()).unwrap();
    let mut session = driver.session(0);
    let mut out = Vec::new();
    assert_eq!(driver.open(&mut session, &mut out), Opening::Ready);
    (0..6).for_each(|_| {
        _ = driver.start(&mut session, DueTime { intended_ns: 0, wall_ms: 0, sent_ns: 0 }, &mut out)
    });
    let mut texts = Vec::new();
    let received = driver
        .receive(&mut session, answers, &mut out, &mut |completion| {
            texts.push(format!("{:?} {}", completion.status, completion.bytes));
        })
        .unwrap();
    assert_eq!(received.used, answers.len());
    texts
}

#[test]
fn answers_are_hits_or_misses_by_command() {
    assert_eq!(
        status("GET __key__", b"$1\r\na\r\n$-1\r\n-WRONGTYPE x\r\n"),
        ["Found { hits: 1, misses: 0 } 7", "Found { hits: 0, misses: 1 } 5", "Failed(\"WRONGTYPE x\") 14"]
    );
    assert_eq!(
        status("MGET __key__ __key__", b"*2\r\n$1\r\na\r\n$-1\r\n"),
        ["Found { hits: 1, misses: 1 } 16"]
    );
    assert_eq!(
        status("HGETALL __key__", b"*0\r\n*2\r\n$1\r\nf\r\n$1\r\nv\r\n"),
        ["Found { hits: 0, misses: 1 } 4", "Found { hits: 1, misses: 0 } 18"]
    );
    assert_eq!(status("SET __key__ 1", b"+OK\r\n"), ["Good 5"]);
    assert_eq!(status("EXEC", b"*2\r\n+OK\r\n-ERR in it\r\n"), ["Failed(\"ERR in it\") 21"]);
}

#[test]
fn the_login_is_answered_before_the_connection_is_ready() {
    let login = Login { password: Some("secret".to_owned()), database: 2, ..Login::default() };
    let driver = Redis::new(vec![group(&[("PING", 1, Pattern::Random)])], login).unwrap();
    let mut session = driver.session(0);
    let mut out = Vec::new();
    assert_eq!(driver.open(&mut session, &mut out), Opening::Wait);
    assert_eq!(out, b"*2\r\n$4\r\nAUTH\r\n$6\r\nsecret\r\n*2\r\n$6\r\nSELECT\r\n$1\r\n2\r\n");
    let mut none = |completion: Completion<'_>| panic!("{completion:?}");
    let first = driver.receive(&mut session, b"+OK\r\n", &mut out, &mut none).unwrap();
    let second = driver.receive(&mut session, b"+OK\r\n", &mut out, &mut none).unwrap();
    assert_eq!((first.ready, second.ready), (false, true));
    driver.open(&mut session, &mut out);
    let error = driver.receive(&mut session, b"-WRONGPASS no\r\n", &mut out, &mut none).unwrap_err();
    assert!(error.contains("WRONGPASS"), "{error}");
}

#[test]
fn what_cannot_be_is_refused() {
    let refused = |change: &dyn Fn(&mut GroupConfig)| {
        let mut config =
            group(&[("SET __key__ __data__", 1, Pattern::Random), ("GET __key__", 1, Pattern::Random)]);
        change(&mut config);
        Redis::new(vec![config], Login::default()).unwrap_err()
    };
    assert!(refused(&|c| c.commands[1].pattern = Pattern::Parallel).contains("first command"));
    assert!(refused(&|c| c.commands.iter_mut().for_each(|c| c.ratio = 0)).contains("ratio above zero"));
    assert!(refused(&|c| c.keys.min = 30).contains("above the largest"));
    assert!(refused(&|c| c.size = Size::Random(5, 4)).contains("bytes"));
    assert!(refused(&|c| c.size = Size::Weighted(vec![])).contains("weight"));
}
