//! Tasks that are not SQL.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use model::limits::QueryLimits;
use query::{Engine, QueryError, Session, TaskError, TaskScope};
use tokio::sync::oneshot;

use crate::limits::until;
use crate::support::{engine, many, user};

/// A small allocation counts for the task on whose thread it is made or freed, so a task can seem to hold a few bytes more or less.
const SMALL_BYTES: usize = 64 * 1024;

type Failed = TaskError<&'static str>;

fn limited(change: impl FnOnce(&mut QueryLimits)) -> Engine {
    let mut limits = QueryLimits { threads: 1, ..QueryLimits::default() };
    change(&mut limits);
    Engine::new(many(1, 1), limits).unwrap()
}

/// Works until it must end, and states when it has noticed.
fn endless(noticed: &Arc<AtomicBool>) -> impl FnOnce(&Arc<TaskScope>) -> Result<(), &'static str> + use<> {
    let noticed = Arc::clone(noticed);
    move |scope| {
        while scope.check().is_ok() {
            std::thread::sleep(Duration::from_millis(1));
        }
        noticed.store(true, Ordering::SeqCst);
        Err("it was stopped")
    }
}

async fn is_idle(engine: &Engine) {
    until("no task runs", || engine.status().running == 0).await;
    until("no task holds memory", || engine.status().allocated_bytes < SMALL_BYTES).await;
}

#[tokio::test]
async fn a_task_returns_its_value_or_its_error() {
    let engine = engine(many(1, 1));
    let value = engine.run_task(&user(), |_| Ok::<_, &str>("a value".to_owned())).await.unwrap();
    assert_eq!(&*value, "a value");
    let error: Failed = engine.run_task(&user(), |_| Err::<(), _>("its own")).await.unwrap_err();
    assert!(matches!(error, TaskError::Task("its own")), "{error}");
    let error: Failed =
        engine.run_task(&user(), |_| -> Result<(), _> { panic!("a fault") }).await.unwrap_err();
    assert!(matches!(error, TaskError::Engine(QueryError::Bug { .. })), "{error}");
    drop(value);
    is_idle(&engine).await;
}

#[tokio::test]
async fn the_time_of_a_task_is_limited() {
    let engine = engine(many(1, 1));
    let noticed = Arc::default();
    let session = Session::new("tester").with_timeout(Duration::from_millis(20));
    let error: Failed = engine.run_task(&session, endless(&noticed)).await.unwrap_err();
    assert!(matches!(error, TaskError::Engine(QueryError::Timeout { .. })), "{error}");
    until("the task has noticed", || noticed.load(Ordering::SeqCst)).await;
    is_idle(&engine).await;
}

#[tokio::test]
async fn a_caller_that_leaves_ends_its_task() {
    let engine = engine(many(1, 1));
    let noticed = Arc::default();
    let task = tokio::spawn({
        let (engine, endless) = (engine.clone(), endless(&noticed));
        async move { engine.run_task(&user(), endless).await }
    });
    until("it runs", || engine.status().running == 1).await;
    task.abort();
    until("the task has noticed", || noticed.load(Ordering::SeqCst)).await;
    is_idle(&engine).await;
}

#[tokio::test]
async fn the_memory_of_a_task_is_limited_and_counts_until_its_result_is_dropped() {
    let engine = limited(|limits| limits.memory_bytes_max = 8 * 1024 * 1024);
    let greedy = |scope: &Arc<TaskScope>| {
        let mut held = Vec::new();
        while scope.check().is_ok() {
            held.push(vec![1_u8; 1024 * 1024]);
        }
        Ok::<_, &str>(held)
    };
    let error = engine.run_task(&user(), greedy).await.unwrap_err();
    assert!(matches!(error, TaskError::Engine(QueryError::OverLimit { .. })), "{error}");
    is_idle(&engine).await;
    let held = engine.run_task(&user(), |_| Ok::<_, &str>(vec![1_u8; 5_000_000])).await.unwrap();
    assert!(engine.status().allocated_bytes >= 5_000_000 - SMALL_BYTES);
    drop(held);
    is_idle(&engine).await;
    let outside = |scope: &Arc<TaskScope>| {
        let cached = scope.outside(|| vec![1_u8; 50_000_000]);
        scope.check().map(|()| cached.len()).map_err(|_| "it counted")
    };
    assert_eq!(*engine.run_task(&user(), outside).await.unwrap(), 50_000_000);
}

#[tokio::test]
async fn tasks_and_statements_wait_for_the_same_permits() {
    let engine = limited(|limits| {
        limits.running_max = 2;
        limits.waiting_max = 0;
    });
    let (release, released) = std::sync::mpsc::channel::<()>();
    let released = Arc::new(std::sync::Mutex::new(released));
    let waiting: Vec<_> = (0..2)
        .map(|_| {
            let (engine, released) = (engine.clone(), Arc::clone(&released));
            let wait = move |_: &Arc<TaskScope>| released.lock().unwrap().recv().map_err(|_| "no release");
            tokio::spawn(async move { engine.run_task(&user(), wait).await.map(|_| ()) })
        })
        .collect();
    until("both run", || engine.status().running == 2).await;
    let busy = engine.run("SELECT 1", &user()).await.unwrap_err();
    assert!(matches!(busy, QueryError::Busy { .. }), "{busy}");
    let busy = engine.run_task(&user(), |_| Ok::<_, &str>(())).await.unwrap_err();
    assert!(matches!(busy, TaskError::Engine(QueryError::Busy { .. })), "{busy}");
    for _ in 0..2 {
        release.send(()).unwrap();
    }
    for task in waiting {
        task.await.unwrap().unwrap();
    }
    engine.run("SELECT 1", &user()).await.unwrap();
}

#[tokio::test]
async fn chunks_come_in_order_and_wait_for_the_caller() {
    let engine = engine(many(1, 1));
    let sent = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&sent);
    let mut chunks = engine
        .stream_task(&user(), move |_, chunks| {
            for number in 0..10 {
                chunks.send(number).map_err(|_| "stopped")?;
                counted.fetch_add(1, Ordering::SeqCst);
            }
            Err("at the end")
        })
        .unwrap();
    until("the channel is full", || sent.load(Ordering::SeqCst) == 2).await;
    for number in 0..10 {
        assert_eq!(chunks.next().await.unwrap().unwrap(), number);
    }
    assert!(matches!(chunks.next().await, Some(Err(TaskError::Task("at the end")))));
    assert!(chunks.next().await.is_none());
    is_idle(&engine).await;
}

#[tokio::test]
async fn a_task_whose_chunks_nobody_takes_ends_with_its_time_or_its_caller() {
    let engine = engine(many(1, 1));
    let flood = |ended: oneshot::Sender<()>| {
        move |_: &Arc<TaskScope>, chunks: &query::ChunkSender<u32>| {
            while chunks.send(1).is_ok() {}
            let _ = ended.send(());
            Err("stopped")
        }
    };
    let (ended, end) = oneshot::channel();
    let session = user().with_timeout(Duration::from_millis(50));
    let mut chunks = engine.stream_task(&session, flood(ended)).unwrap();
    end.await.unwrap();
    is_idle(&engine).await;
    let mut last = chunks.next().await.unwrap();
    while last.is_ok() {
        last = chunks.next().await.unwrap();
    }
    assert!(matches!(last, Err(TaskError::Engine(QueryError::Timeout { .. }))), "{last:?}");
    assert!(chunks.next().await.is_none());

    let (ended, end) = oneshot::channel();
    let mut chunks = engine.stream_task(&user(), flood(ended)).unwrap();
    assert_eq!(chunks.next().await.unwrap().unwrap(), 1);
    drop(chunks);
    end.await.unwrap();
    is_idle(&engine).await;
}
