use super::*;
use crate::conflist::tests::valid_files;

#[test]
fn every_truncation_of_every_valid_file_is_closed() {
    for (file, contents) in valid_files() {
        let contents = contents.trim_ascii();
        assert!(Network::parse(&file, contents).is_ok());
        for length in 0..contents.len() {
            let parsed = Network::parse(&file, &contents[..length]);
            assert!(parsed.is_err(), "{file:?} cut at {length}: {parsed:?}");
        }
    }
}

/// A linear congruential generator: the same bytes in each run.
fn noise(mut state: u64) -> impl Iterator<Item = u8> {
    std::iter::from_fn(move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        Some(state.to_be_bytes()[0])
    })
}

#[test]
fn arbitrary_bytes_never_panic_and_never_open() {
    let list = Network::parse(OsStr::new("x.conflist"), br#"{"name":"n"}"#).unwrap();
    for seed in 0..5_000 {
        let mut bytes = noise(seed);
        let length = usize::from(bytes.next().unwrap());
        let contents: Vec<u8> = bytes.by_ref().take(length).collect();
        // Only characters that JSON is made of get beyond the first byte.
        let alphabet = b"{}[]:,\"\\ntrue0.-e name plugins type";
        let almost: Vec<u8> = bytes
            .take(length)
            .map(|byte| alphabet[usize::from(byte) % alphabet.len()])
            .collect();
        for contents in [contents, almost] {
            for file in ["x.conf", "x.conflist"] {
                assert!(Network::parse(OsStr::new(file), &contents).is_err());
            }
            assert!(list.clone().append(&contents).is_err());
        }
    }
}

#[test]
fn damaged_files_never_panic() {
    for (file, contents) in valid_files() {
        for seed in 0..500 {
            let mut damaged = contents.clone();
            let mut bytes = noise(seed);
            for _ in 0..3 {
                let place: usize = bytes
                    .by_ref()
                    .take(2)
                    .fold(0, |n, b| n << 8 | usize::from(b));
                let length = damaged.len();
                damaged[place % length] = bytes.next().unwrap();
            }
            _ = Network::parse(&file, &damaged);
        }
    }
}

#[test]
fn what_libcni_accepts_as_a_list_is_valid() {
    const P: &str = r#""plugins":[{"type":"p"}]"#;
    let valid = [
        format!(r#"{{"name":"n",{P}}}"#),
        format!(" \t\r\n{{\"name\":\"n\",{P}}} \n"),
        format!(r#"{{"name":"0a_b.c-D","cniVersion":"7",{P}}}"#),
        format!(r#"{{"name":"n","cniVersion":"1","cniVersions":["0.4.0","1.0","","+9.9.9"],{P}}}"#),
        format!(r#"{{"name":"n","disableCheck":true,"disableGC":"FALSE","loadOnlyInlinedPlugins":"True",{P}}}"#),
        // The last one counts; keys of the list itself match exactly.
        format!(r#"{{"name":1,"plugins":{{}},"name":"n","Name":2,{P}}}"#),
        r#"{"name":"n","plugins":[{"TYPE":"p"}]}"#.into(),
        r#"{"name":"n","plugins":[{"type":"p","ipam":{"type":"t","x":[]},"dns":{"search":[null]},"capabilities":null}]}"#.into(),
        r#"{"name":"n","plugins":[{"type":"p","prevResult":{"a":1},"capabilities":{"a":true},"x":1}]}"#.into(),
    ];
    for contents in valid {
        let parsed = Network::parse(OsStr::new("x.conflist"), contents.as_bytes());
        assert_eq!(
            parsed.as_ref().map(|n| n.plugins.clone()),
            Ok(vec!["p".into()]),
            "{contents}"
        );
    }
}

/// Beyond libcni: the name rule, one spelling of a key.
#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn what_libcni_refuses_as_a_list_is_closed_with_the_fault() {
    let invalid = [
        (r"", "the file is empty"),
        ("\n", "the file is empty"),
        (r"[]", "must be a JSON object"),
        (r"null", "must be a JSON object"),
        (r"{}", "no `name`"),
        (r#"{"Name":"n","plugins":[{"type":"p"}]}"#, "no `name`"),
        (
            r#"{"name":null,"plugins":[{"type":"p"}]}"#,
            "`name` must be a string",
        ),
        (
            r#"{"name":"","plugins":[{"type":"p"}]}"#,
            r#"the network name "" has"#,
        ),
        (
            r#"{"name":"../n","plugins":[{"type":"p"}]}"#,
            r#"the network name "../n" has"#,
        ),
        (
            r#"{"name":"n/m","plugins":[{"type":"p"}]}"#,
            r#"the network name "n/m" has"#,
        ),
        (
            r#"{"name":"n\n","plugins":[{"type":"p"}]}"#,
            r#"the network name "n\n" has"#,
        ),
        (
            r#"{"name":"n","cniVersion":1,"plugins":[{"type":"p"}]}"#,
            "`cniVersion` must be a string",
        ),
        (
            r#"{"name":"n","cniVersion":null,"plugins":[{"type":"p"}]}"#,
            "`cniVersion` must be a string",
        ),
        (
            r#"{"name":"n","cniVersions":"1.0.0","plugins":[{"type":"p"}]}"#,
            "`cniVersions` must be a list",
        ),
        (
            r#"{"name":"n","cniVersions":[1],"plugins":[{"type":"p"}]}"#,
            "`cniVersions` must have strings",
        ),
        (
            r#"{"name":"n","cniVersions":["1.0.0.0"],"plugins":[{"type":"p"}]}"#,
            r#"has "1.0.0.0""#,
        ),
        (
            r#"{"name":"n","cniVersions":["v1"],"plugins":[{"type":"p"}]}"#,
            r#"has "v1""#,
        ),
        (
            r#"{"name":"n","cniVersion":"x","cniVersions":[],"plugins":[{"type":"p"}]}"#,
            r#"`cniVersion` has "x""#,
        ),
        (
            r#"{"name":"n","disableCheck":1,"plugins":[{"type":"p"}]}"#,
            "`disableCheck` must be",
        ),
        (
            r#"{"name":"n","disableGC":"yes","plugins":[{"type":"p"}]}"#,
            "`disableGC` must be",
        ),
        (
            r#"{"name":"n","loadOnlyInlinedPlugins":null,"plugins":[{"type":"p"}]}"#,
            "`loadOnlyInlinedPlugins` must be",
        ),
        (
            r#"{"name":"n","loadOnlyInlinedPlugins":true}"#,
            "no `plugins`",
        ),
        (r#"{"name":"n","plugins":null}"#, "`plugins` must be a list"),
        (
            r#"{"name":"n","plugins":{"type":"p"}}"#,
            "`plugins` must be a list",
        ),
        (r#"{"name":"n","plugins":[]}"#, "`plugins` is empty"),
        (
            r#"{"name":"n","plugins":[{"type":"p"},null]}"#,
            "plugin 1: no `type`",
        ),
        (
            r#"{"name":"n","plugins":["p"]}"#,
            "plugin 0: must be an object",
        ),
        (
            r#"{"name":"n","plugins":[{"type":""}]}"#,
            "plugin 0: no `type`",
        ),
        (
            r#"{"name":"n","plugins":[{"type":7}]}"#,
            "plugin 0: `type` must be a string",
        ),
        (
            r#"{"name":"n","plugins":[{"type":"p","Type":"q"}]}"#,
            "two spellings",
        ),
        (
            r#"{"name":"n","plugins":[{"type":"p","ipam":[]}]}"#,
            "plugin 0: `ipam` must be an object",
        ),
        (
            r#"{"name":"n","plugins":[{"type":"p","ipam":{"type":1}}]}"#,
            "`ipam` `type` must be a string",
        ),
        (
            r#"{"name":"n","plugins":[{"type":"p","dns":{"search":"a"}}]}"#,
            "`dns` `search` must be a list",
        ),
        (
            r#"{"name":"n","plugins":[{"type":"p","capabilities":{"a":1}}]}"#,
            "`capabilities` must be true or false",
        ),
        (
            r#"{"name":"n","plugins":[{"type":"p","prevResult":[]}]}"#,
            "`prevResult` must be an object",
        ),
        (
            r#"{"name":"n","plugins":[{"type":"p"}]}{}"#,
            "not valid JSON",
        ),
        (
            r#"{"name":"n","plugins":[{"type":"p"}],"x":1e999}"#,
            "not valid JSON",
        ),
        (
            "\u{feff}{\"name\":\"n\",\"plugins\":[{\"type\":\"p\"}]}",
            "not valid JSON",
        ),
    ];
    for (contents, fault) in invalid {
        let parsed = Network::parse(OsStr::new("x.conflist"), contents.as_bytes());
        let reason = parsed.expect_err(contents);
        assert!(reason.contains(fault), "{contents}: {reason}");
    }
}

#[test]
fn plugins_may_come_from_the_networks_directory_unless_only_inlined_ones_load() {
    let parse = |contents: &str| Network::parse(OsStr::new("x.conflist"), contents.as_bytes());
    let network = parse(r#"{"name":"n"}"#).unwrap();
    assert!(network.appends_directory && network.plugins.is_empty());
    let network = parse(r#"{"name":"n","plugins":[{"type":"p"}]}"#).unwrap();
    assert!(network.appends_directory);
    let inlined = r#"{"name":"n","loadOnlyInlinedPlugins":true,"plugins":[{"type":"p"}]}"#;
    assert!(!parse(inlined).unwrap().appends_directory);
}

#[test]
fn a_single_plugin_needs_a_type_and_a_name_and_is_no_list() {
    for file in ["x.conf", "x.json"] {
        let parse = |contents: &str| Network::parse(OsStr::new(file), contents.as_bytes());
        let network = parse(r#"{"Name":"n","type":"p","cniVersions":1}"#).unwrap();
        assert_eq!(
            (network.name.as_str(), network.plugins),
            ("n", vec!["p".into()])
        );
        assert!(!network.appends_directory);
        for (contents, fault) in [
            (
                r#"{"name":"n","plugins":[{"type":"p"}]}"#,
                "must be in a *.conflist file",
            ),
            (r#"{"type":"p"}"#, "no `name`"),
            (r#"{"name":"n"}"#, "no `type`"),
            (r#"{"name":1,"type":"p"}"#, "`name` must be a string"),
            (
                r#"{"name":"n","type":"p","cniVersion":1}"#,
                "`cniVersion` must be a string",
            ),
            ("null", "no `type`"),
            ("[]", "must be an object"),
        ] {
            let reason = parse(contents).expect_err(contents);
            assert!(reason.contains(fault), "{contents}: {reason}");
        }
    }
}

#[test]
fn a_version_that_is_none_is_closed_in_every_kind_of_file() {
    for version in [
        "banana",
        "v1.0.0",
        "1.0.0-rc1",
        "1.x",
        "1..0",
        "1.0.0.0",
        " 1.0.0",
        "1.0.0\n",
        ".",
        "１.0.0",
        "99999999999999999999",
    ] {
        let version = serde_json::to_string(version).unwrap();
        for (file, contents) in [
            (
                "x.conflist",
                format!(r#"{{"name":"n","cniVersion":{version},"plugins":[{{"type":"p"}}]}}"#),
            ),
            (
                "x.conflist",
                format!(
                    r#"{{"name":"n","cniVersion":{version},"cniVersions":["1.0.0"],"plugins":[{{"type":"p"}}]}}"#
                ),
            ),
            (
                "x.conflist",
                format!(
                    r#"{{"name":"n","cniVersions":["1.0.0",{version}],"plugins":[{{"type":"p"}}]}}"#
                ),
            ),
            (
                "x.conf",
                format!(r#"{{"name":"n","cniVersion":{version},"type":"p"}}"#),
            ),
            (
                "x.json",
                format!(r#"{{"name":"n","CNIversion":{version},"type":"p"}}"#),
            ),
        ] {
            let parsed = Network::parse(OsStr::new(file), contents.as_bytes());
            let reason = parsed.expect_err(&contents);
            assert!(
                reason.contains("not a valid version"),
                "{contents}: {reason}"
            );
        }
    }
}
