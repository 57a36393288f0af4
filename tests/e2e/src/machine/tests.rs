use super::*;

/// A machine that has one thing, or nothing.
fn machine(kind: Kind, name: &str, value: Option<&str>) -> Machine {
    let value = value.map(|value| ((kind, name.to_owned()), value.to_owned()));
    Machine(value.into_iter().collect())
}

#[test]
fn only_what_a_scenario_can_have_made_is_its_own() {
    let own = [
        (Kind::Mount, "/"),
        (Kind::Mount, "/run/untaint-e2e/node"),
        (Kind::Mount, "/src/target/e2e/story"),
        (Kind::Device, "wire"),
        (Kind::Device, "flannel.1"),
        (Kind::Path, "/etc/cni/net.d/10-flannel.conflist"),
        (Kind::Path, "/var/lib/kubelet"),
        (Kind::Group, "/sys/fs/cgroup/memory/untaint-e2e"),
        (Kind::Group, "/sys/fs/cgroup/kubepods"),
        (Kind::Controllers, cgroups::ENABLED),
        (Kind::Setting, "/proc/sys/vm/overcommit_memory"),
    ];
    let foreign = [
        (Kind::Mount, "/proc/sys/fs/binfmt_misc"),
        (Kind::Mount, "/run/user/1000"),
        (Kind::Device, "docker0"),
        (Kind::Device, "eth1"),
        (Kind::Group, "/sys/fs/cgroup/user.slice"),
        (Kind::Setting, "/proc/sys/net/ipv4/ip_forward"),
    ];
    let own = own.map(|(kind, name)| (kind, name, true));
    let foreign = foreign.map(|(kind, name)| (kind, name, false));
    for (kind, name, is_own) in own.into_iter().chain(foreign) {
        let found = machine(kind, name, Some("a")).compare(&machine(kind, name, Some("b")));
        let (some, none) = if is_own {
            (found.own, found.foreign)
        } else {
            (found.foreign, found.own)
        };
        assert_eq!(some, [format!("{kind} {name}: was a, is b")]);
        assert!(none.is_empty(), "{name}");
    }
}

#[test]
fn what_is_new_or_gone_is_told_except_for_settings_of_new_modules() {
    let rows = [
        (Kind::Device, None, Some(""), Some("new")),
        (Kind::Device, Some(""), None, Some("gone")),
        (Kind::Device, Some(""), Some(""), None),
        (Kind::Setting, None, Some("1"), None),
        (Kind::Setting, Some("1"), None, Some("gone")),
    ];
    for (kind, before, after, expected) in rows {
        let found = machine(kind, "it", before).compare(&machine(kind, "it", after));
        let expected = expected.map(|word| format!("{kind} it: {word}"));
        assert_eq!(found.foreign, Vec::from_iter(expected));
    }
}

#[test]
fn counters_and_the_automount_are_not_looked_at() {
    let machine = Machine::look().unwrap();
    let known = |name: &str| machine.0.keys().any(|(_, known)| known.starts_with(name));
    assert!(known("/proc/sys/vm/overcommit_memory"));
    assert!(!known("/proc/sys/fs/file-nr"));
    assert!(!known("/proc/sys/fs/binfmt_misc/"));
}
