//! Work on a thread of its own, for what may hang: nothing interrupts it there, and it outlives whoever waits for it.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::future::pending;
use std::panic::resume_unwind;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};
use tokio::task::{JoinHandle, spawn_blocking};

/// Threads at one place at a time: of several users, or left over from those that have given up.
const AT_ONE: usize = 4;
/// Threads at all places at a time. The runtime has 512, and there must be some for what hangs nowhere.
const AT_ALL: usize = 200;

/// Bounds the threads that may hang at places such as paths or names, so that one place cannot take the threads of others
/// however often it is tried.
pub(crate) struct Places {
    all: Semaphore,
    in_use: Mutex<BTreeMap<OsString, Arc<Semaphore>>>,
}

impl Places {
    pub(crate) const fn new() -> Self {
        Self {
            all: Semaphore::const_new(AT_ALL),
            in_use: Mutex::new(BTreeMap::new()),
        }
    }

    /// Waits until there may be one more thread at `place`.
    pub(crate) async fn enter(&'static self, place: &OsStr) -> Entry {
        let here = self.at(place).acquire_owned().await;
        Entry {
            _of_one: here.ok(),
            _of_all: self.all.acquire().await.ok(),
        }
    }

    fn at(&self, place: &OsStr) -> Arc<Semaphore> {
        let mut in_use = self.in_use.lock().unwrap_or_else(PoisonError::into_inner);
        in_use.retain(|_, threads| Arc::strong_count(threads) > 1);
        let threads = in_use.entry(place.to_owned());
        Arc::clone(threads.or_insert_with(|| Arc::new(Semaphore::new(AT_ONE))))
    }
}

/// The right to one thread. `None` in it would mean a semaphore that was closed, and none is.
pub(crate) struct Entry {
    _of_one: Option<OwnedSemaphorePermit>,
    _of_all: Option<SemaphorePermit<'static>>,
}

impl Entry {
    /// Does `work` there.
    pub(crate) fn spawn<T: Send + 'static>(
        self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<T> {
        spawn_blocking(move || {
            let _entry = self;
            work()
        })
    }
}

/// What a thread came to; not at all while the runtime shuts down. A panic goes on here. Safe to cancel and call again.
pub(crate) async fn joined<T>(task: &mut JoinHandle<T>) -> T {
    match task.await {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            Err(_) => pending().await,
        },
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn a_place_where_work_hangs_holds_up_itself_alone() {
        static PLACES: Places = Places::new();
        let enter = |place: &'static str| PLACES.enter(place.as_ref()).now_or_never();
        let mut hung: Vec<_> = (0..AT_ONE).map(|_| enter("hangs").unwrap()).collect();
        assert!(enter("hangs").is_none());
        assert!(enter("other").is_some());
        hung.pop();
        assert!(enter("hangs").is_some());
        drop(hung);
        assert!(enter("other").is_some());
        assert_eq!(
            PLACES.in_use.lock().unwrap().len(),
            1,
            "the rest is forgotten"
        );
    }

    #[test]
    fn many_places_where_work_hangs_leave_threads_for_what_does_not() {
        static PLACES: Places = Places::new();
        let enter = |place: usize| PLACES.enter(place.to_string().as_ref()).now_or_never();
        let hung: Vec<_> = (0..AT_ALL).map(|place| enter(place).unwrap()).collect();
        assert!(enter(AT_ALL).is_none());
        drop(hung);
        assert!(enter(AT_ALL).is_some());
    }
}
