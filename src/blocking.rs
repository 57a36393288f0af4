//! Runs work that may hang on threads of their own. Nothing interrupts such work, and it can outlive its caller.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::future::pending;
use std::panic::resume_unwind;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};
use tokio::task::{JoinHandle, spawn_blocking};

/// Threads at one place of a [`ThreadPool`]: of several callers, or of callers that no longer wait.
const AT_ONE_PLACE: usize = 4;
/// Threads of one [`ThreadPool`]. The runtime has 512 threads, of which some must be left for what does not hang.
const IN_ONE_POOL: usize = 150;

/// For gates. A gate that a reload replaces may leave a thread, so all gates share this pool.
pub(crate) static GATES: ThreadPool = ThreadPool::new();
/// For the placing of file watches.
pub(crate) static FILE_WATCHES: ThreadPool = ThreadPool::new();
/// For names of the API server. A pool of their own: gates that hang must not keep the agent from the API server.
pub(crate) static API_NAMES: ThreadPool = ThreadPool::new();

/// Limits the threads that may hang at each place, which is a path or a host name. A place that hangs cannot take the
/// threads of others, however often it is tried.
pub(crate) struct ThreadPool {
    all: Semaphore,
    places: Mutex<BTreeMap<OsString, Arc<Semaphore>>>,
}

impl ThreadPool {
    const fn new() -> Self {
        Self {
            all: Semaphore::const_new(IN_ONE_POOL),
            places: Mutex::new(BTreeMap::new()),
        }
    }

    /// Does `work` at `place` when there is a thread for it. Safe to cancel: work that has begun goes on alone.
    pub(crate) async fn run<T: Send + 'static>(
        &'static self,
        place: &OsStr,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> T {
        joined(&mut self.permit(place).await.spawn(work)).await
    }

    /// Waits until there may be one more thread at `place`.
    pub(crate) async fn permit(&'static self, place: &OsStr) -> Permit {
        let at_place = self.at(place).acquire_owned().await;
        Permit {
            _at_place: at_place.ok(),
            _in_pool: self.all.acquire().await.ok(),
        }
    }

    fn at(&self, place: &OsStr) -> Arc<Semaphore> {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        places.retain(|_, threads| Arc::strong_count(threads) > 1);
        let threads = places.entry(place.to_owned());
        Arc::clone(threads.or_insert_with(|| Arc::new(Semaphore::new(AT_ONE_PLACE))))
    }
}

/// The right to one thread. `None` in it would mean a closed semaphore, and none is closed.
pub(crate) struct Permit {
    _at_place: Option<OwnedSemaphorePermit>,
    _in_pool: Option<SemaphorePermit<'static>>,
}

impl Permit {
    pub(crate) fn spawn<T: Send + 'static>(
        self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<T> {
        spawn_blocking(move || {
            let _permit = self;
            work()
        })
    }
}

/// The result of a thread. Never completes while the runtime shuts down. A panic of the thread continues here. Safe to
/// cancel and to call again.
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
        static POOL: ThreadPool = ThreadPool::new();
        let permit = |place: &'static str| POOL.permit(place.as_ref()).now_or_never();
        let mut hung: Vec<_> = (0..AT_ONE_PLACE)
            .map(|_| permit("hangs").unwrap())
            .collect();
        assert!(permit("hangs").is_none());
        assert!(permit("other").is_some());
        hung.pop();
        assert!(permit("hangs").is_some());
        drop(hung);
        assert!(permit("other").is_some());
        assert_eq!(
            POOL.places.lock().unwrap().len(),
            1,
            "the rest is forgotten"
        );
    }

    #[test]
    fn many_places_where_work_hangs_leave_threads_for_what_does_not() {
        static POOL: ThreadPool = ThreadPool::new();
        let permit = |place: usize| POOL.permit(place.to_string().as_ref()).now_or_never();
        let hung: Vec<_> = (0..IN_ONE_POOL)
            .map(|place| permit(place).unwrap())
            .collect();
        assert!(permit(IN_ONE_POOL).is_none());
        drop(hung);
        assert!(permit(IN_ONE_POOL).is_some());
    }
}
