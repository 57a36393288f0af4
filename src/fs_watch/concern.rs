//! What events mean for a path. Pure.

use std::path::PathBuf;

use notify::event::ModifyKind;
use notify::{Event, EventKind};

#[derive(Debug, Clone)]
pub(super) struct Target {
    pub(super) path: PathBuf,
    pub(super) scope: Scope,
}

/// What the reader of a path reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// The path, and its entries if it is a directory.
    Path,
    /// The same, perhaps through links beside the path: it may read differently after another entry of its directory came,
    /// went or was renamed.
    Siblings,
    /// The path, its entries, and the entries of the directories in it or to which links in it lead.
    Directories,
}

/// What an event means for the watched path.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Concern {
    None,
    /// It may read differently now.
    Content,
    /// The same, and an entry came, went or was renamed that may be a directory which is read too.
    Directories,
    /// It or one of its ancestors came, went or was renamed, or a link that leads to it may have been.
    Place,
}

/// `None` is an error of notify, after which any event may have been missed.
pub(super) fn concern(target: &Target, event: Option<&Event>) -> Concern {
    let path = target.path.as_path();
    let Some(event) = event.filter(|event| !event.need_rescan()) else {
        return Concern::Place;
    };
    let is_entry = |touched: &PathBuf| touched != path && touched.starts_with(path);
    let is_path = |touched: &PathBuf| path.starts_with(touched);
    // A write into a sibling does not change where the path leads.
    let is_sibling =
        |touched: &PathBuf| target.scope == Scope::Siblings && touched.parent() == path.parent();
    let is_child =
        |touched: &PathBuf| target.scope == Scope::Directories && touched.parent() == Some(path);
    let is_written = matches!(
        event.kind,
        EventKind::Modify(ModifyKind::Data(_) | ModifyKind::Metadata(_))
    );
    let touches = |is_it: &dyn Fn(&PathBuf) -> bool| event.paths.iter().any(is_it);
    match event.kind {
        // Opens and closes, which notify always asks for: reads of the agent and of the container runtime.
        EventKind::Access(_) => Concern::None,
        _ if touches(&is_path) && is_written => Concern::Content,
        _ if touches(&is_path) => Concern::Place,
        _ if touches(&is_child) && !is_written => Concern::Directories,
        _ if touches(&is_entry) => Concern::Content,
        _ if touches(&is_sibling) && !is_written => Concern::Place,
        _ => Concern::None,
    }
}
