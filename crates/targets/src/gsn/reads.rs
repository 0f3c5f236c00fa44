//! The client of the questions: the newest rows of a sensor as CSV, over a connection for each request.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use clients::CancelHandle;
use clients::http::{Body, HttpClient, HttpRequest, escaped};
use load::dataset::Random;
use load::protocol::{Blocking, Done, DueTime, Failure};
use parking_lot::Mutex;

use super::answer::read;
use super::options::Sizes;
use super::sensors::Sensor;
use super::tally::{Answered, Tally};
use crate::timeseries::refusal::quoted;

/// The load of a phase.
pub(super) struct Questions<'a> {
    pub(super) http: &'a HttpClient,
    pub(super) sensors: &'a [Sensor],
    pub(super) size: u64,
    pub(super) sizes: Sizes,
    /// The number of questions at which the phase ends.
    pub(super) queries: Option<u64>,
    pub(super) class: u16,
    pub(super) seed: u64,
    /// The sensors in a random order: each is asked once before one is asked again.
    order: Vec<usize>,
    next: AtomicU64,
    tally: Mutex<Tally>,
}

/// A client.
pub(super) struct Session {
    http: HttpClient,
    question: Question,
    /// The latest answer, which is not checked yet.
    answer: Option<Answer>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Question {
    sensor: usize,
    wanted: u64,
}

struct Answer {
    body: Vec<u8>,
    began: Instant,
    ended: Instant,
}

impl<'a> Questions<'a> {
    pub(super) fn new(
        (http, sensors): (&'a HttpClient, &'a [Sensor]),
        (size, sizes, queries): (u64, Sizes, Option<u64>),
        class: u16,
        seed: u64,
    ) -> Self {
        let mut order: Vec<usize> = (0..sensors.len()).collect();
        let mut random = Random::keyed(seed, u64::from(class) + 200, 0);
        for at in (1..order.len()).rev() {
            order.swap(at, random.below(at as u64 + 1) as usize);
        }
        let (next, tally) = (AtomicU64::new(0), Mutex::default());
        Self { http, sensors, size, sizes, queries, class, seed, order, next, tally }
    }

    /// The data that all clients have received.
    pub(super) fn into_tally(self) -> Tally {
        self.tally.into_inner()
    }

    fn question(&self, number: u64) -> Question {
        let sensor = self.order[(number % self.order.len() as u64) as usize];
        let wanted = match self.sizes {
            Sizes::Most => self.size,
            Sizes::Random => {
                Random::keyed(self.seed, u64::from(self.class) + 300, number).between(1, self.size)
            }
        };
        Question { sensor, wanted }
    }
}

/// The path of a question, with the parameters of GSN's tool in their order.
pub(super) fn path(sensor: &str, rows: u64) -> String {
    format!(
        "/multidata?vs[0]={}&field[0]=All&download_mode=inline&download_format=csv&nb=SPECIFIED&nb_value={rows}",
        escaped(sensor)
    )
}

/// Asks for rows, over a connection of its own.
pub(super) fn ask(http: &HttpClient, sensor: &str, rows: u64) -> Result<Vec<u8>, Failure> {
    let path = path(sensor, rows);
    let request =
        HttpRequest { headers: &[("Connection", "close")], ..HttpRequest::new("GET", &path, Body::Empty) };
    let answer = http.send(&request).map_err(|error| Failure::Refused(error.to_string()))?;
    match answer.status {
        200 => Ok(answer.body),
        429 | 503 => Err(Failure::Again(quoted(answer.status, &answer.body))),
        status => Err(Failure::Refused(quoted(status, &answer.body))),
    }
}

impl Blocking for Questions<'_> {
    type Session = Session;

    fn open(&self, _: u32) -> Result<Session, String> {
        Ok(Session { http: self.http.clone(), question: Question::default(), answer: None })
    }

    /// Each question has a connection of its own.
    fn reopen(&self, _: &mut Session) -> Result<(), String> {
        Ok(())
    }

    fn cancel_handle(&self, _: &Session) -> Option<CancelHandle> {
        None
    }

    fn next(&self, session: &mut Session) -> Option<u16> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        if self.queries.is_some_and(|queries| number >= queries) {
            return None;
        }
        session.question = self.question(number);
        Some(self.class)
    }

    fn run(&self, session: &mut Session, _: u16, _: DueTime) -> Result<Done, Failure> {
        let Question { sensor, wanted } = session.question;
        let began = Instant::now();
        let body = ask(&session.http, &self.sensors[sensor].name, wanted)?;
        let bytes_in = body.len() as u64;
        session.answer = Some(Answer { body, began, ended: Instant::now() });
        Ok(Done { bytes_in, ..Done::default() })
    }

    fn check(&self, session: &mut Session) -> Result<(), String> {
        let Some(Answer { body, began, ended }) = session.answer.take() else { return Ok(()) };
        let Question { sensor, wanted } = session.question;
        let Sensor { name, fields } = &self.sensors[sensor];
        let contents = read(&body, name, fields)?;
        if contents.rows > wanted {
            return Err(format!("{name}: {} rows in an answer for {wanted}", contents.rows));
        }
        let answered = Answered {
            sensor,
            wanted,
            rows: contents.rows,
            fields: fields.len() as u64,
            line_bytes: contents.line_bytes,
            body_bytes: body.len() as u64,
            millis: u64::try_from((ended - began).as_millis()).unwrap_or(u64::MAX),
        };
        self.tally.lock().add(answered, began, ended);
        Ok(())
    }

    fn close(&self, _: &mut Session) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use clients::http::HttpLimits;

    #[test]
    fn each_sensor_is_asked_once_before_one_is_asked_again() {
        let limits = HttpLimits { timeout: std::time::Duration::from_secs(1), body_bytes_max: 1 };
        let http = HttpClient::new("http://127.0.0.1:1", limits);
        let sensors: Vec<Sensor> =
            (0..20).map(|number| Sensor { name: format!("s{number}"), fields: Vec::new() }).collect();
        let questions = Questions::new((&http, &sensors), (50, Sizes::Random, Some(20)), 0, 7);
        let mut session = questions.open(0).unwrap();
        let mut asked = std::collections::BTreeSet::new();
        while questions.next(&mut session).is_some() {
            assert!((1..=50).contains(&session.question.wanted));
            assert!(asked.insert(session.question.sensor));
        }
        assert_eq!(asked.len(), 20);
        let most = Questions::new((&http, &sensors), (50, Sizes::Most, None), 0, 7);
        assert_eq!((most.question(3).wanted, most.question(23).sensor), (50, most.question(3).sensor));
    }

    #[test]
    fn the_question_is_that_of_the_tool() {
        let expected = "/multidata?vs[0]=hist_imis_zer_3&field[0]=All&download_mode=inline&download_format=csv&nb=SPECIFIED&nb_value=50000";
        assert_eq!(path("hist_imis_zer_3", 50_000), expected);
    }
}
