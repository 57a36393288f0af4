use super::*;

#[test]
fn what_is_no_configuration_file_is_closed_and_directories_are_skipped() {
    let node = Node::new();
    fs::create_dir(node.path("00.conflist")).unwrap();
    let first = node.path("10.conflist");
    node.write("20-cilium.conflist", CILIUM);
    node.opens();

    for contents in [&b""[..], b"\0\x7fELF", &[0xff; 4096], b"kind: Config"] {
        fs::write(&first, contents).unwrap();
        node.closed("10.conflist: ");
    }
    fs::remove_file(&first).unwrap();
    // It has no writer.
    mknodat(CWD, &first, FileType::Fifo, Mode::RUSR, 0).unwrap();
    node.closed("10.conflist: not a regular file");
    fs::remove_file(&first).unwrap();
    symlink("00.conflist", &first).unwrap();
    node.closed("10.conflist: is a directory");
    fs::remove_file(&first).unwrap();
    symlink("10.conflist", &first).unwrap();
    node.closed("10.conflist: too many levels of symbolic links");
}

#[test]
fn a_huge_file_is_refused() {
    let node = Node::new();
    let spaces = " ".repeat(usize::try_from(MAX_FILE_BYTES).unwrap() - CILIUM.len());
    let path = node.write("05-cilium.conflist", format!("{CILIUM}{spaces}"));
    node.opens();
    let mut file = OpenOptions::new().append(true).open(&path).unwrap();
    file.write_all(b" ").unwrap();
    node.closed("05-cilium.conflist: larger than 1048576 bytes");
    // Sparse: were it read as a whole, this would take minutes.
    file.set_len(1 << 40).unwrap();
    node.closed("05-cilium.conflist: larger than 1048576 bytes");
}
