//! A task for each entry of a list that changes.

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;

use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Runs a task for each entry of a list, as entries are added, changed and removed, until the runtime ends. No two entries of a
/// list have one name. `begin` gives the task of an entry; `None` if the entry needs none.
pub(crate) async fn manage<T, F>(
    mut entries: watch::Receiver<Arc<[Arc<T>]>>,
    name: impl Fn(&T) -> &str,
    begin: impl Fn(Arc<T>) -> Option<F>,
) where
    T: PartialEq,
    F: Future<Output = ()> + Send + 'static,
{
    let mut tasks: HashMap<String, (Arc<T>, JoinHandle<()>)> = HashMap::new();
    loop {
        let wanted = Arc::clone(&entries.borrow_and_update());
        let is_wanted = |entry: &Arc<T>| wanted.iter().any(|wanted| wanted == entry);
        let ended: Vec<_> = tasks.extract_if(|_, (entry, _)| !is_wanted(entry)).collect();
        for (_, (_, task)) in ended {
            task.abort();
            // Its port, its files and its cursor are free before another task needs them. An aborted task ends with an error.
            drop(task.await);
        }
        for entry in wanted.iter() {
            let name = name(entry);
            if tasks.get(name).is_none_or(|(_, task)| task.is_finished())
                && let Some(task) = begin(Arc::clone(entry))
            {
                tasks.insert(name.to_owned(), (Arc::clone(entry), tokio::spawn(task)));
            }
        }
        if entries.changed().await.is_err() {
            return;
        }
    }
}
