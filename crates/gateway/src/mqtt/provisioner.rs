//! Threads that give devices their credentials, or add them, because that waits for the disk. There are as many as have work, within a limit.

use std::collections::VecDeque;
use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use hub::certificate::Certificate;
use hub::registry::{Credentials, Device, Profile};
use hub::wake::Wake;
use hub::{Door, Hub};
use model::panics::contain_panic;
use parking_lot::Mutex;
use wire::thingsboard::provision::{Answer, ProvisionRequest};

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
    run: Box<dyn FnOnce(&Hub) + Send>,
    wake: Arc<dyn Wake>,
}

/// The device of a certificate with its credentials, or the reason why it has none.
pub(crate) type Joined = Result<(Arc<Device>, Credentials), String>;

/// The search for the device of a certificate, under way.
#[derive(Debug)]
pub(crate) struct Join(Arc<OnceLock<Joined>>);

impl Join {
    /// The result; `None` while the search is under way.
    pub(crate) fn result(&self) -> Option<&Joined> {
        self.0.get()
    }
}

/// A request under way.
#[derive(Debug)]
pub(crate) struct Provision(Arc<OnceLock<Answer>>);

impl Provision {
    /// The answer for the device; `None` while the request is under way.
    pub(crate) fn answer(&self) -> Option<&Answer> {
        self.0.get()
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
        let given = Arc::clone(&answer);
        let run = move |hub: &Hub| {
            let answer = contain_panic(|| provisioning::answer(hub, Door::Mqtt, Some(peer), &request));
            let answer = match answer {
                Ok(Ok(answer)) => answer,
                Ok(Err(refused)) => Answer::Failed(refused.to_string()),
                Err(_) => Answer::Failed(FAILED.to_owned()),
            };
            // Nobody else sets it.
            drop(given.set(answer));
        };
        self.add(Job { run: Box::new(run), wake }).then(|| Provision(answer))
    }

    /// Begins to find or to add the device that a certificate names, which an authority of the profile has signed. Otherwise like
    /// [`begin`](Self::begin).
    pub(crate) fn join(
        self: &Arc<Self>,
        profile: Arc<Profile>,
        certificate: Certificate,
        wake: Arc<dyn Wake>,
    ) -> Option<Join> {
        let joined = Arc::new(OnceLock::new());
        let given = Arc::clone(&joined);
        let run = move |hub: &Hub| {
            let result = match contain_panic(|| hub.provision_by_chain(&profile, &certificate)) {
                Ok(found) => found.map_err(|refused| refused.to_string()),
                Err(_) => Err(FAILED.to_owned()),
            };
            drop(given.set(result));
        };
        self.add(Job { run: Box::new(run), wake }).then(|| Join(joined))
    }

    /// Adds a job. Returns `false` if too many wait, or the system has no thread left.
    fn add(self: &Arc<Self>, job: Job) -> bool {
        let mut work = self.work.lock();
        if work.waiting.len() >= PROVISIONS_WAITING_MAX {
            return false;
        }
        if work.threads < PROVISIONS_AT_ONCE {
            let provisioner = Arc::clone(self);
            let thread = std::thread::Builder::new().name("provision".to_owned());
            match thread.spawn(move || provisioner.work()) {
                Ok(_) => work.threads += 1,
                Err(error) if work.threads == 0 => {
                    tracing::warn!(%error, "no thread for a device that asks for credentials");
                    return false;
                }
                // The others will take it.
                Err(_) => {}
            }
        }
        work.waiting.push_back(job);
        true
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
            (job.run)(&self.hub);
            job.wake.wake();
        }
    }
}

/// The answer after a bug.
const FAILED: &str = "the server failed at this request; its log says why";
