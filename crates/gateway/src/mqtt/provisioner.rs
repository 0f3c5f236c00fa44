//! Threads that give devices their credentials, because that waits for the disk. There are as many as have work, within a limit.

use std::collections::VecDeque;
use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use hub::wake::Wake;
use hub::{Door, Hub};
use model::panics::contain_panic;
use parking_lot::Mutex;
use wire::thingsboard::provision::{self, ProvisionRequest};

use super::limits::{PROVISIONS_AT_ONCE, PROVISIONS_WAITING_MAX};
use crate::provisioning;

/// The requests of devices that have no credentials yet.
pub(crate) struct Provisioner {
    hub: Arc<Hub>,
    work: Mutex<Work>,
}

#[derive(Default)]
struct Work {
    waiting: VecDeque<Job>,
    threads: usize,
}

struct Job {
    request: ProvisionRequest,
    peer: SocketAddr,
    answer: Arc<OnceLock<String>>,
    wake: Arc<dyn Wake>,
}

/// A request under way.
#[derive(Debug)]
pub(crate) struct Provision(Arc<OnceLock<String>>);

impl Provision {
    /// The answer for the device; `None` while the request is under way.
    pub(crate) fn answer(&self) -> Option<&str> {
        self.0.get().map(String::as_str)
    }
}

impl fmt::Debug for Provisioner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Provisioner").field("threads", &self.work.lock().threads).finish_non_exhaustive()
    }
}

impl Provisioner {
    pub(super) fn new(hub: Arc<Hub>) -> Arc<Self> {
        Arc::new(Self { hub, work: Mutex::default() })
    }

    /// Begins a request. `wake` is called when its answer is there. `None` if too many requests wait, or the system has no thread
    /// left.
    pub(crate) fn begin(
        self: &Arc<Self>,
        request: ProvisionRequest,
        peer: SocketAddr,
        wake: Arc<dyn Wake>,
    ) -> Option<Provision> {
        let answer = Arc::new(OnceLock::new());
        let mut work = self.work.lock();
        if work.waiting.len() >= PROVISIONS_WAITING_MAX {
            return None;
        }
        if work.threads < PROVISIONS_AT_ONCE {
            let provisioner = Arc::clone(self);
            let thread = std::thread::Builder::new().name("provision".to_owned());
            match thread.spawn(move || provisioner.work()) {
                Ok(_) => work.threads += 1,
                Err(error) if work.threads == 0 => {
                    tracing::warn!(%error, "no thread for a device that asks for credentials");
                    return None;
                }
                // The others will take it.
                Err(_) => {}
            }
        }
        work.waiting.push_back(Job { request, peer, answer: Arc::clone(&answer), wake });
        Some(Provision(answer))
    }

    /// Does the work that waits.
    fn work(&self) {
        loop {
            let mut work = self.work.lock();
            let Some(job) = work.waiting.pop_front() else {
                work.threads -= 1;
                return;
            };
            drop(work);
            let Job { request, peer, answer, wake } = job;
            let given = contain_panic(|| provisioning::answer(&self.hub, Door::Mqtt, Some(peer), &request));
            let text = match given {
                Ok(Ok(text)) => text,
                Ok(Err(refused)) => provision::failed(&refused.to_string()),
                Err(_) => provision::failed("the server failed at this request; its log says why"),
            };
            // Nobody else sets it.
            drop(answer.set(text));
            wake.wake();
        }
    }
}
