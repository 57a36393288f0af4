use super::*;

fn file(name: &str) -> SourceFile {
    SourceFile {
        name: name.into(),
        text: format!("# {name}\n"),
    }
}

/// The fields of `data` for these files, or why there are none.
fn data(names: &[&str]) -> Result<Vec<(String, String)>, String> {
    let files: Vec<_> = names.iter().map(|name| file(name)).collect();
    let map = ConfigMap::of(&files).map_err(|error| error.to_string())?;
    let data: BTreeMap<String, String> = serde_yaml::from_str(&map.data()).unwrap();
    Ok(data.into_iter().collect())
}

#[test]
fn a_single_file_has_the_same_key_and_path_whatever_its_name() {
    for name in [
        "config.yaml",
        "conf.d/10-network.yml",
        "standard input",
        "…",
    ] {
        let data = data(&[name]).unwrap();
        assert_eq!(data, [("config.yaml".into(), format!("# {name}\n"))]);
        let map = ConfigMap::of(&[file(name)]).unwrap();
        assert_eq!(map.mounted(), "/etc/untaint/config.yaml");
    }
}

#[test]
fn several_files_have_their_own_names_as_keys_and_are_read_as_a_directory() {
    let names = ["/x/no.yaml", "y/10.yml", "A_b.c-d.yaml"];
    let keys = ["10.yml", "A_b.c-d.yaml", "no.yaml"];
    let texts = [names[1], names[2], names[0]].map(|name| format!("# {name}\n"));
    let expected: Vec<_> = keys.map(str::to_owned).into_iter().zip(texts).collect();
    assert_eq!(data(&names).unwrap(), expected);
    let map = ConfigMap::of(&names.map(file)).unwrap();
    assert_eq!(map.mounted(), "/etc/untaint");
}

#[test]
fn the_name_of_the_configmap_has_a_hash_of_all_keys_and_texts() {
    let account = "a:b".parse().unwrap();
    let name = |files: &[SourceFile]| ConfigMap::of(files).unwrap().name(&account);
    let (a, b) = (file("a.yaml"), file("b.yaml"));
    let both = name(&[a.clone(), b.clone()]);
    assert_eq!(name(&[b.clone(), a.clone()]), both);
    let other = SourceFile {
        name: "c.yaml".into(),
        ..b.clone()
    };
    let changed = SourceFile {
        text: "# changed\n".into(),
        ..b
    };
    for files in [&[a.clone()][..], &[a.clone(), other], &[a, changed]] {
        assert_ne!(name(files), both);
    }
}

#[test]
fn files_that_a_configmap_cannot_hold_under_their_names_are_refused_with_a_remedy() {
    let same = data(&["x/a.yaml", "b.yaml", "y/a.yaml"]).unwrap_err();
    assert!(
        same.starts_with("x/a.yaml and y/a.yaml have the same file name"),
        "{same}"
    );
    assert!(same.ends_with("rename one of them"), "{same}");
    let long = format!("{}.yaml", "a".repeat(249));
    for name in [
        "standard input",
        "a.json",
        "a",
        ".a.yaml",
        "..a.yaml",
        "a b.yaml",
        "ä.yaml",
        "a\\n.yaml",
        "x/..",
        &long,
    ] {
        let refusal = data(&["ok.yaml", name]).unwrap_err();
        assert!(
            refusal.starts_with(&format!("the name of the file {name} cannot be a key")),
            "{refusal}"
        );
    }
}
