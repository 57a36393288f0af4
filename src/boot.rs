//! The time and the ID of this boot of the machine.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use jiff::{SignedDuration, Timestamp};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};
use rustix::time::{ClockId, clock_gettime};

/// A process that starts so soon after the boot is part of it: the pods of a node start within minutes.
const SOON: Duration = Duration::from_mins(10);

/// A boot of which the start of this process is part.
#[derive(Debug, Clone, Copy)]
pub struct Boot {
    pub time: Timestamp,
    /// Until then, what the agent finds may be from before the boot.
    pub until: Instant,
}

/// The boot, if the start of this process is part of it.
pub(crate) fn just_now() -> Option<Boot> {
    let Uptime { boot, now } = Uptime::now()?;
    let age = Duration::try_from(now.duration_since(boot)).ok()?;
    Some(Boot {
        time: boot,
        until: Instant::now() + SOON.checked_sub(age)?,
    })
}

/// A moment by the clock that stops while the machine is suspended, by the one that does not (clock_gettime(2)), and by the
/// one that can be set.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    /// CLOCK_MONOTONIC, by which all timers run.
    pub(crate) awake: Instant,
    /// CLOCK_BOOTTIME.
    pub(crate) elapsed: Duration,
    /// CLOCK_REALTIME.
    pub(crate) clock: Timestamp,
}

impl Moment {
    pub(crate) fn now() -> Self {
        let elapsed = Duration::try_from(clock_gettime(ClockId::Boottime));
        Self {
            awake: Instant::now(),
            // It is never negative.
            elapsed: elapsed.unwrap_or_default(),
            clock: Timestamp::now(),
        }
    }
}

/// How far another machine's clock may be ahead of this one's.
const CLOCK_SKEW: SignedDuration = SignedDuration::from_mins(1);

/// The time from the boot until now, by the clock as it is set now: a step of the clock moves both ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Uptime {
    /// In whole seconds.
    pub boot: Timestamp,
    pub now: Timestamp,
}

impl Uptime {
    /// `None` where the boot time cannot be read.
    pub(crate) fn now() -> Option<Self> {
        Self::by(read_soon("stat")).ok()
    }

    /// May hang.
    pub(crate) fn read() -> Result<Self, String> {
        Self::by(fs::read_to_string("/proc/stat"))
    }

    fn by(stat: io::Result<String>) -> Result<Self, String> {
        let boot = Timestamp::try_from(time_in(stat)?);
        Ok(Self {
            boot: boot.map_err(|error| format!("the boot time is unknown: {error}"))?,
            now: Timestamp::now(),
        })
    }

    /// Whether what was written at this time was written since the boot. Times in the API are whole seconds, as the boot
    /// time is, so the second of the boot counts. Times in the future do not count: where the clock is behind after the
    /// boot, times of earlier boots are in the future.
    pub fn contains(&self, time: Timestamp) -> bool {
        self.boot <= time && time.duration_since(self.now) <= CLOCK_SKEW
    }
}

/// The kernel's ID of this boot, which the kubelet reports too; `None` where it cannot be read soon.
pub(crate) fn id() -> Option<String> {
    let id = read_soon("sys/kernel/random/boot_id").ok()?;
    let id = id.trim();
    is_id(id).then(|| id.to_owned())
}

/// Whether the text is a UUID. A kubelet that cannot read the ID reports something else.
pub fn is_id(text: &str) -> bool {
    let groups = text.split('-').map(|group| {
        let is_hex = group.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_hex.then_some(group.len())
    });
    groups.eq([8, 4, 4, 4, 12].map(Some))
}

/// When something was written, and why that is not since this boot.
pub(crate) fn not_since(uptime: Option<Uptime>, time: Timestamp) -> String {
    match uptime {
        Some(Uptime { boot, .. }) if time < boot => {
            format!("from {time:.0}, before the boot at {boot:.0}")
        }
        Some(Uptime { boot, now }) => format!(
            "from {time:.0}, which is in the future: it is now {now:.0}, and the boot was at {boot:.0}"
        ),
        None => format!("from {time:.0}, and the boot time is unknown"),
    }
}

/// In whole seconds, from `btime` in `/proc/stat` (proc(5)), which the host's boot sets inside containers too.
fn time_in(stat: io::Result<String>) -> Result<SystemTime, String> {
    let stat = stat.map_err(|error| format!("the boot time is unknown: /proc/stat: {error}"))?;
    btime(&stat).ok_or_else(|| "the boot time is unknown: no btime in /proc/stat".into())
}

const PATIENCE: Duration = Duration::from_millis(500);

/// Reads a file of `/proc`, within [`PATIENCE`]. In LXC some belong to LXCFS, a file system in user space, which may hang.
/// So another thread reads a file that is not the kernel's own, one file at a time.
fn read_soon(name: &'static str) -> io::Result<String> {
    static UNANSWERED: Mutex<Option<Receiver<io::Result<String>>>> = Mutex::new(None);
    if let Ok(mut file) = kernels_own(name) {
        let mut text = String::new();
        return file.read_to_string(&mut text).map(|_| text);
    }
    let mut unanswered = UNANSWERED.lock().unwrap_or_else(PoisonError::into_inner);
    let silence = || io::Error::new(io::ErrorKind::TimedOut, "the file system does not answer");
    let last = unanswered.as_ref().map(Receiver::try_recv);
    if matches!(last, Some(Err(TryRecvError::Empty))) {
        return Err(silence());
    }
    // Has room for the answer, so that the thread ends even if this function no longer waits for it.
    let (sender, answer) = sync_channel(1);
    thread::Builder::new().spawn(move || {
        let _ = sender.send(fs::read_to_string(Path::new("/proc").join(name)));
    })?;
    let read = answer.recv_timeout(PATIENCE);
    *unanswered = matches!(read, Err(RecvTimeoutError::Timeout)).then_some(answer);
    read.unwrap_or_else(|_| Err(silence()))
}

/// Opens a file of `/proc`. Fails if another file system is mounted over it, without asking that file system.
fn kernels_own(name: &str) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let directory = openat(CWD, "/proc", flags | OFlags::DIRECTORY, Mode::empty())?;
    let unmounted = ResolveFlags::NO_XDEV;
    let file = openat2(directory, name, flags, Mode::empty(), unmounted)?;
    Ok(file.into())
}

fn btime(stat: &str) -> Option<SystemTime> {
    let seconds = stat.lines().find_map(|line| line.strip_prefix("btime "))?;
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds.trim().parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_boot_time_is_read_from_the_line_that_has_it() {
        let stat = "cpu  1 2 3\nintr 5\nbtime 1700000000\nprocesses 9\n";
        let expected = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        assert_eq!(btime(stat), Some(expected));
        for bad in [
            "",
            "btime",
            "btime x",
            "btime -1",
            "btime 18446744073709551616",
        ] {
            assert_eq!(btime(bad), None, "{bad}");
        }
        assert_eq!(btime("btime 18446744073709551615"), None);
    }

    #[test]
    fn this_machine_booted_in_the_past_and_its_boot_has_an_id() {
        let uptime = Uptime::now().unwrap();
        assert!(uptime.boot < uptime.now && uptime.boot == Uptime::read().unwrap().boot);
        assert!(
            uptime.contains(uptime.boot) && uptime.contains(uptime.now),
            "{uptime:?}"
        );
        assert!(is_id(&id().unwrap()));
    }

    #[test]
    fn a_time_is_of_this_boot_from_its_second_on_and_until_now() {
        let at = |time: &str| format!("2026-03-01T{time}Z").parse::<Timestamp>().unwrap();
        let uptime = Uptime {
            boot: at("12:00:00"),
            now: at("12:00:30.5"),
        };
        for (time, expected) in [
            ("11:59:59", false),
            ("12:00:00", true),
            ("12:00:30", true),
            // Of a machine whose clock is ahead.
            ("12:01:30", true),
            ("12:01:31", false),
            ("20:00:00", false),
        ] {
            assert_eq!(uptime.contains(at(time)), expected, "{time}");
        }
    }

    #[test]
    fn only_a_uuid_is_a_boot_id() {
        for (text, expected) in [
            ("e0d025f9-f289-46ea-ae56-e2309a1f3aa9", true),
            ("E0D025F9-F289-46EA-AE56-E2309A1F3AA9", true),
            ("", false),
            ("e0d025f9f28946eaae56e2309a1f3aa9", false),
            ("e0d025f9-f289-46ea-ae56-e2309a1f3aa", false),
            ("e0d025f9-f289-46ea-ae56-e2309a1f3aag", false),
            ("e0d025f9-f289-46ea-ae56-e2309a1f3aa9-1234", false),
        ] {
            assert_eq!(is_id(text), expected, "{text}");
        }
    }
}
