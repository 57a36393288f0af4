//! When this machine booted.

use std::fs;
use std::time::{Duration, Instant, SystemTime};

use jiff::Timestamp;

/// A process that starts so soon after the boot has come up with it: pods of the node start within minutes.
const SOON: Duration = Duration::from_mins(10);

/// A boot that this process has come up with.
#[derive(Debug, Clone, Copy)]
pub struct Boot {
    /// When the machine booted.
    pub time: Timestamp,
    /// For how long what is found may be what the boot has left.
    pub until: Instant,
}

/// The boot, if this process has come up with it.
pub(crate) fn just_now() -> Option<Boot> {
    let boot = time().ok()?;
    let age = SystemTime::now().duration_since(boot).ok()?;
    Some(Boot {
        time: Timestamp::try_from(boot).ok()?,
        until: Instant::now() + SOON.checked_sub(age)?,
    })
}

/// To the second, from `btime` in `/proc/stat` (proc(5)), which the host's boot sets inside containers too.
pub(crate) fn time() -> Result<SystemTime, String> {
    let stat = fs::read_to_string("/proc/stat")
        .map_err(|error| format!("the boot time is unknown: /proc/stat: {error}"))?;
    btime(&stat).ok_or_else(|| "the boot time is unknown: no btime in /proc/stat".into())
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
    fn this_machine_booted_in_the_past() {
        assert!(time().unwrap() < SystemTime::now());
    }
}
