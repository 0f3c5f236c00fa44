//! Admits queries: a limited number runs, a limited number waits, and further ones are refused as busy.
//!
//! A place that becomes free goes to the tenant that runs the fewest queries, of several to the one that has got none for longest. While several
//! tenants ask, none of them runs or waits with more than its share, so that the long statements of one leave places for the others.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use model::limits::MEMORY_SAMPLE_INTERVAL;
use model::{MemoryPressure, MemoryReservation, MemoryShortage};
use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::QueryError;

/// Who asks: the tenant of a session.
pub(crate) type TenantKey = u128;

/// The part of all places, running and waiting, that a tenant gets while others ask too.
const SHARE: (usize, usize) = (3, 4);
/// A tenant counts as asking for so long after its last query.
const ASKING_TIME: Duration = Duration::from_secs(60);

/// A place of a running query. It is free again when this is dropped.
#[derive(Debug)]
pub(crate) struct Permit {
    places: Arc<Places>,
    tenant: TenantKey,
    /// What the query may take of the memory of the process.
    memory: Option<MemoryReservation>,
}

#[derive(Debug)]
pub(crate) struct Admission {
    places: Arc<Places>,
    waiting_time_max: Duration,
    pressure: Arc<MemoryPressure>,
    /// Bytes that a query reserves.
    query_bytes: u64,
}

#[derive(Debug)]
struct Places {
    running_max: usize,
    waiting_max: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    running: usize,
    waiting: usize,
    /// The number of the next query that waits.
    next: u64,
    /// Permits that were given.
    given: u64,
    tenants: HashMap<TenantKey, Tenant>,
}

#[derive(Debug)]
struct Tenant {
    running: usize,
    /// Queries that wait, the first one first.
    queue: VecDeque<(u64, oneshot::Sender<Permit>)>,
    asked_at: Instant,
    /// The number of the last permit that it got.
    got: u64,
}

impl Admission {
    pub(crate) fn new(running_max: usize, waiting_max: usize, waiting_time_max: Duration) -> Self {
        let places = Places { running_max: running_max.max(1), waiting_max, state: Mutex::default() };
        Self { places: Arc::new(places), waiting_time_max, pressure: Arc::default(), query_bytes: 0 }
    }

    /// Lets queries run only while the memory of the process has room for `query_bytes` for each.
    pub(crate) fn under(self, pressure: Arc<MemoryPressure>, query_bytes: u64) -> Self {
        Self { pressure, query_bytes, ..self }
    }

    /// Waits until a query of the tenant may run. It counts as running until the permit is dropped.
    pub(crate) async fn enter(&self, tenant: TenantKey) -> Result<Permit, QueryError> {
        let mut permit = self.place(tenant).await?;
        permit.memory = Some(self.memory().await.map_err(QueryError::Memory)?);
        Ok(permit)
    }

    /// Waits until the memory of the process allows another statement.
    async fn memory(&self) -> Result<MemoryReservation, MemoryShortage> {
        let began = Instant::now();
        loop {
            match self.pressure.reserve(self.query_bytes) {
                Err(shortage) if began.elapsed() >= self.waiting_time_max => return Err(shortage),
                // Each sample may find more room.
                Err(_) => tokio::time::sleep(MEMORY_SAMPLE_INTERVAL).await,
                Ok(reservation) => return Ok(reservation),
            }
        }
    }

    /// Waits for a free place.
    async fn place(&self, tenant: TenantKey) -> Result<Permit, QueryError> {
        let (number, granted) = match self.places.ask(tenant, Instant::now())? {
            Asked::Permit(permit) => return Ok(permit),
            Asked::Waits(number, granted) => (number, granted),
        };
        let _waiting = Waiting { places: &self.places, tenant, number };
        match tokio::time::timeout(self.waiting_time_max, granted).await {
            Ok(Ok(permit)) => Ok(permit),
            Ok(Err(closed)) => Err(QueryError::Bug { message: closed.to_string() }),
            Err(_) => {
                let (running_max, seconds) = (self.places.running_max, self.waiting_time_max.as_secs_f64());
                let reason = format!("{running_max} queries run and none has ended for {seconds} s");
                Err(QueryError::Busy { reason })
            }
        }
    }

    pub(crate) fn running(&self) -> usize {
        self.places.state.lock().running
    }

    pub(crate) fn waiting(&self) -> usize {
        self.places.state.lock().waiting
    }
}

enum Asked {
    Permit(Permit),
    Waits(u64, oneshot::Receiver<Permit>),
}

impl Places {
    fn ask(self: &Arc<Self>, tenant: TenantKey, now: Instant) -> Result<Asked, QueryError> {
        let mut state = self.state.lock();
        state.tenants.retain(|key, known| {
            *key == tenant || !known.is_idle() || now.saturating_duration_since(known.asked_at) < ASKING_TIME
        });
        let new = || Tenant { running: 0, queue: VecDeque::new(), asked_at: now, got: 0 };
        state.tenants.entry(tenant).or_insert_with(new).asked_at = now;
        let several = state.tenants.len() > 1;
        let of_tenant = &state.tenants[&tenant];
        let may_run = of_tenant.running < share(self.running_max, several);
        if state.running < self.running_max && may_run && of_tenant.queue.is_empty() {
            return Ok(Asked::Permit(self.grant(&mut state, tenant)));
        }
        let waiting_max = share(self.waiting_max, several);
        if state.waiting >= self.waiting_max || of_tenant.queue.len() >= waiting_max {
            let running = self.running_max;
            let reason = match several {
                false => format!("{running} queries run and {} wait, the limit", self.waiting_max),
                true => format!(
                    "{running} queries run, and {} or {waiting_max} of one tenant wait, the limits",
                    self.waiting_max
                ),
            };
            return Err(QueryError::Busy { reason });
        }
        let (grant, granted) = oneshot::channel();
        let number = state.next;
        state.next += 1;
        state.waiting += 1;
        state.tenants.get_mut(&tenant).expect("BUG: it was added").queue.push_back((number, grant));
        Ok(Asked::Waits(number, granted))
    }

    fn grant(self: &Arc<Self>, state: &mut State, tenant: TenantKey) -> Permit {
        state.running += 1;
        state.given += 1;
        let of_tenant = state.tenants.get_mut(&tenant).expect("BUG: a tenant that asks is known");
        of_tenant.running += 1;
        of_tenant.got = state.given;
        Permit { places: Arc::clone(self), tenant, memory: None }
    }

    /// Gives free places to those that wait.
    fn pass_on(self: &Arc<Self>) {
        // A permit whose query has left is dropped without the lock: its place is passed on in turn.
        let mut refused = Vec::new();
        let mut state = self.state.lock();
        while state.running < self.running_max {
            let several = state.tenants.len() > 1;
            let most = share(self.running_max, several);
            let waits = state.tenants.iter().filter(|(_, tenant)| tenant.running < most);
            let first = waits.filter_map(|(key, tenant)| {
                Some((tenant.running, tenant.got, tenant.queue.front()?.0, *key))
            });
            let Some((_, _, _, next)) = first.min() else { break };
            let queue = &mut state.tenants.get_mut(&next).expect("BUG: it waits").queue;
            let (_, grant) = queue.pop_front().expect("BUG: its queue has a first");
            state.waiting -= 1;
            let permit = self.grant(&mut state, next);
            if let Err(permit) = grant.send(permit) {
                refused.push(permit);
                break;
            }
        }
        drop(state);
        drop(refused);
    }
}

/// What a tenant may have of `all`; at least one, and all if no other tenant asks.
fn share(all: usize, several: bool) -> usize {
    if several { (all * SHARE.0 / SHARE.1).max(1) } else { all }
}

impl Tenant {
    fn is_idle(&self) -> bool {
        self.running == 0 && self.queue.is_empty()
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        {
            let mut state = self.places.state.lock();
            state.running -= 1;
            if let Some(tenant) = state.tenants.get_mut(&self.tenant) {
                tenant.running -= 1;
            }
        }
        self.places.pass_on();
    }
}

/// A query that waits. Dropping it takes it out of the queue, also when the caller gives up.
struct Waiting<'a> {
    places: &'a Places,
    tenant: TenantKey,
    number: u64,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut state = self.places.state.lock();
        let Some(tenant) = state.tenants.get_mut(&self.tenant) else { return };
        let before = tenant.queue.len();
        tenant.queue.retain(|(number, _)| *number != self.number);
        state.waiting -= before - state.tenants[&self.tenant].queue.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::from_secs(3_600);

    async fn entered(admission: &Arc<Admission>, tenant: TenantKey) -> Permit {
        admission.enter(tenant).await.unwrap()
    }

    /// A task that enters, and the order in which such tasks were let in.
    fn enters(
        admission: &Arc<Admission>,
        tenant: TenantKey,
        order: &Arc<Mutex<Vec<TenantKey>>>,
    ) -> tokio::task::JoinHandle<()> {
        let (admission, order) = (Arc::clone(admission), Arc::clone(order));
        tokio::spawn(async move {
            let permit = entered(&admission, tenant).await;
            order.lock().push(tenant);
            tokio::task::yield_now().await;
            drop(permit);
        })
    }

    async fn until(is_done: impl Fn() -> bool) {
        while !is_done() {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn one_tenant_alone_has_all_places() {
        let admission = Arc::new(Admission::new(4, 2, NOW));
        let permits = [(); 4].map(|()| entered(&admission, 1));
        let permits = futures_util::future::join_all(permits).await;
        assert_eq!((admission.running(), admission.waiting()), (4, 0));
        let order = Arc::default();
        let waiting = [(); 2].map(|()| enters(&admission, 1, &order));
        until(|| admission.waiting() == 2).await;
        let refused = admission.enter(1).await.unwrap_err().to_string();
        assert!(refused.contains("4 queries run and 2 wait"), "{refused}");
        drop(permits);
        futures_util::future::join_all(waiting).await;
        assert_eq!((admission.running(), admission.waiting()), (0, 0));
    }

    #[tokio::test]
    async fn long_queries_of_one_tenant_leave_places_for_another() {
        let admission = Arc::new(Admission::new(4, 100, NOW));
        let order = Arc::default();
        let mut long: Vec<Permit> = Vec::new();
        for _ in 0..4 {
            long.push(entered(&admission, 1).await);
        }
        let other = enters(&admission, 2, &order);
        let more: Vec<_> = (0..10).map(|_| enters(&admission, 1, &order)).collect();
        until(|| admission.waiting() == 11).await;
        // The first free place is the other tenant's. The place after it stays free: three of four are the share of one tenant.
        long.pop();
        other.await.unwrap();
        assert_eq!((order.lock().clone(), admission.running()), (vec![2], 3));
        drop(long);
        futures_util::future::join_all(more).await;
        assert_eq!((admission.running(), admission.waiting()), (0, 0));
    }

    #[tokio::test]
    async fn tenants_take_turns() {
        let admission = Arc::new(Admission::new(1, 100, NOW));
        let order = Arc::default();
        let first = entered(&admission, 9).await;
        let many: Vec<_> = (0..6).map(|_| enters(&admission, 1, &order)).collect();
        until(|| admission.waiting() == 6).await;
        let few: Vec<_> = (0..2).map(|_| enters(&admission, 2, &order)).collect();
        until(|| admission.waiting() == 8).await;
        drop(first);
        futures_util::future::join_all(many).await;
        futures_util::future::join_all(few).await;
        assert_eq!(*order.lock(), [1, 2, 1, 2, 1, 1, 1, 1]);
    }

    #[tokio::test]
    async fn a_query_waits_for_memory() {
        const MIB: u64 = 1024 * 1024;
        let pressure = Arc::new(MemoryPressure::default());
        let admission = Arc::new(Admission::new(4, 100, NOW).under(Arc::clone(&pressure), MIB));
        pressure.report(95 * MIB, 100 * MIB);
        let waiting = tokio::spawn({
            let admission = Arc::clone(&admission);
            async move { admission.enter(1).await.map(drop) }
        });
        until(|| admission.running() == 1).await;
        assert!(!waiting.is_finished());
        pressure.report(10 * MIB, 100 * MIB);
        waiting.await.unwrap().unwrap();
        assert_eq!((admission.running(), pressure.reserved()), (0, 0));
        let permit = entered(&admission, 1).await;
        assert_eq!(pressure.reserved(), MIB);
        drop(permit);
        assert_eq!(pressure.reserved(), 0);
    }

    #[tokio::test]
    async fn a_query_that_gives_up_takes_no_place() {
        let admission = Arc::new(Admission::new(1, 10, Duration::from_millis(1)));
        let running = entered(&admission, 1).await;
        let refused = admission.enter(1).await.unwrap_err().to_string();
        assert!(refused.contains("none has ended for 0.001 s"), "{refused}");
        assert_eq!(admission.waiting(), 0);
        drop(running);
        drop(entered(&admission, 1).await);
        assert_eq!(admission.running(), 0);
    }
}
