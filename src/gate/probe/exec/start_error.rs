//! Why a program cannot start.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::text::{excerpt, io_message};

/// As much of a program as the kernel looks at (`BINPRM_BUF_SIZE`).
const HEAD_BYTES: u64 = 256;

const WRONG_FORMAT: &str = "exec format error: the file is neither a program for this machine nor a script whose first line begins with #! and an interpreter";

/// `/dev/null`, which is the standard input of every program.
pub(super) fn empty_input() -> io::Result<File> {
    File::open("/dev/null").map_err(|error| {
        let why = io_message(&error);
        io::Error::other(format!(
            "/dev/null cannot be opened: {why}; untaint's container needs /dev"
        ))
    })
}

/// Fails if execve(2) refuses the format of a text. The function of glibc that starts programs in a static binary
/// (execvp(3)) runs such a file with `/bin/sh`, and so an empty file succeeds, or one of zeros, which a power failure leaves.
/// The kubelet and the runtimes do not.
///
/// Returns whether the program is for another machine: glibc gives it to `/bin/sh` too, unless binfmt_misc has an emulator.
pub(super) fn check_format(program: &str) -> io::Result<bool> {
    let Some(head) = head(program) else {
        return Ok(false);
    };
    if machine(&head).is_none() && interpreter(&head).is_none() {
        return Err(Errno::NOEXEC.into());
    }
    Ok(is_foreign(&head))
}

/// The cause and the remedy.
pub(super) fn describe(program: &str, error: &io::Error) -> String {
    let errno = Errno::from_io_error(error);
    match error.kind() {
        ErrorKind::NotFound => not_found(program),
        ErrorKind::PermissionDenied => "permission denied, or not executable".into(),
        _ if errno == Some(Errno::NOEXEC) => WRONG_FORMAT.into(),
        _ if errno == Some(Errno::AGAIN) => {
            "no more processes can start: raise the limit of processes (pids) of untaint's container or of its user"
                .into()
        }
        _ => io_message(error),
    }
}

fn not_found(program: &str) -> String {
    let path = Path::new(program);
    if !path.exists() {
        return match fs::read_link(path) {
            Ok(target) => format!("broken symbolic link to {}", target.display()),
            Err(_) => "not found".into(),
        };
    }
    let Some(head) = head(program) else {
        return "the interpreter or loader that the program needs does not exist".into();
    };
    match interpreter(&head) {
        Some(name) if name.ends_with('\r') => format!(
            "its interpreter {} does not exist: the script has the line endings of Windows",
            excerpt(&name)
        ),
        Some(name) if Path::new(&name).exists() => format!(
            "the loader that its interpreter {} needs does not exist",
            excerpt(&name)
        ),
        Some(name) => format!("its interpreter {} does not exist", excerpt(&name)),
        // execvp(3) has then looked for /bin/sh.
        None if is_foreign(&head) => WRONG_FORMAT.into(),
        None => "the loader that the program needs does not exist: use a statically linked program"
            .into(),
    }
}

/// The beginning of a regular file; `None` if it cannot be read. Programs need not be readable.
fn head(program: &str) -> Option<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(program, flags, Mode::empty()).ok()?);
    file.metadata().ok().filter(fs::Metadata::is_file)?;
    let mut head = Vec::new();
    file.take(HEAD_BYTES).read_to_end(&mut head).ok()?;
    Some(head)
}

/// The interpreter of a script, as `load_script` of the kernel reads it (fs/binfmt_script.c).
fn interpreter(head: &[u8]) -> Option<String> {
    let line = head.strip_prefix(b"#!")?;
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let line = line.split(|byte| *byte == b'\n').next()?;
    let mut words = line.split(is_blank).filter(|word| !word.is_empty());
    words
        .next()
        .map(|word| String::from_utf8_lossy(word).into_owned())
}

/// Whether it is an ELF file for machines of another kind.
fn is_foreign(head: &[u8]) -> bool {
    let own = self::head("/proc/self/exe").and_then(|own| machine(&own));
    match (machine(head), own) {
        // Programs of 32 bits, which these machines can run too: EM_386 on EM_X86_64, and EM_ARM on EM_AARCH64 (elf.h).
        (Some(3), Some(62)) | (Some(40), Some(183)) => false,
        (Some(machine), Some(own)) => machine != own,
        _ => false,
    }
}

/// `e_machine` of an ELF file (elf(5)), in the byte order that the file says it has.
fn machine(head: &[u8]) -> Option<u16> {
    let bytes = [*head.get(18)?, *head.get(19)?];
    match head {
        [0x7f, b'E', b'L', b'F', _, 2, ..] => Some(u16::from_be_bytes(bytes)),
        [0x7f, b'E', b'L', b'F', ..] => Some(u16::from_le_bytes(bytes)),
        _ => None,
    }
}
