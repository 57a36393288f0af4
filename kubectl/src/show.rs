//! Explanations as text and as JSON.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::Result;
use serde_json::json;

use crate::cluster::Cluster;
use crate::explain::Explanation;

/// How many names of nodes a group shows.
const NAMES: usize = 5;

pub(crate) fn json(cluster: &Cluster, explanations: &[Explanation]) -> Result<String> {
    let all = json!({"nodes": explanations, "unread": cluster.unread});
    Ok(serde_json::to_string_pretty(&all)? + "\n")
}

/// Each node in full.
pub(crate) fn text(cluster: &Cluster, explanations: &[Explanation]) -> String {
    let mut text = String::new();
    for explanation in explanations {
        if !text.is_empty() {
            text.push('\n');
        }
        node(&mut text, explanation);
    }
    unread(&mut text, cluster);
    text
}

fn node(text: &mut String, explanation: &Explanation) {
    let Explanation {
        node,
        reason,
        not_ready,
        taints,
        karpenter,
    } = explanation;
    let reason = reason
        .as_deref()
        .unwrap_or("nothing keeps ordinary pods away");
    let _ = writeln!(text, "{node}: {reason}");
    if let Some(not_ready) = not_ready {
        let _ = writeln!(text, "  not Ready: {}", not_ready.message);
        if let Some(meaning) = not_ready.meaning {
            let _ = writeln!(text, "    meaning     {meaning}");
        }
        if let Some(next) = not_ready.next {
            let _ = writeln!(text, "    next        {next}");
        }
    }
    for taint in taints {
        let _ = writeln!(text, "  {}", taint.taint);
        let _ = writeln!(text, "    removed by  {}", taint.removed_by);
        for why in &taint.why {
            let _ = writeln!(text, "    why         {why}");
        }
        let _ = writeln!(text, "    next        {}", taint.next);
    }
    if !karpenter.is_empty() {
        let _ = writeln!(text, "  Karpenter");
        for factor in karpenter {
            let mark = if factor.met { "yes" } else { "no " };
            let detail = if factor.met {
                String::new()
            } else {
                format!(": {}", factor.detail)
            };
            let _ = writeln!(text, "    {mark}         {}{detail}", factor.what);
        }
    }
}

/// The nodes in groups of the same reason, the largest group first.
pub(crate) fn groups(cluster: &Cluster, explanations: &[Explanation]) -> String {
    let mut groups: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let stuck = explanations
        .iter()
        .filter_map(|one| Some((one.reason.as_deref()?, one)));
    for (reason, explanation) in stuck {
        groups.entry(reason).or_default().push(&explanation.node);
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by_key(|(reason, nodes)| (usize::MAX - nodes.len(), *reason));
    let stuck: usize = groups.iter().map(|(_, nodes)| nodes.len()).sum();
    let mut text = format!(
        "{} nodes, of which {stuck} do not take ordinary pods\n",
        explanations.len()
    );
    for (reason, nodes) in groups {
        let names = nodes
            .iter()
            .take(NAMES)
            .copied()
            .collect::<Vec<_>>()
            .join(", ");
        let more = if nodes.len() > NAMES { ", …" } else { "" };
        let _ = writeln!(text, "{:>6}  {reason}\n        {names}{more}", nodes.len());
    }
    unread(&mut text, cluster);
    text
}

fn unread(text: &mut String, cluster: &Cluster) {
    if cluster.is_without_untaint() {
        let _ = writeln!(
            text,
            "note: untaint is not installed in this cluster, or its pods cannot be read"
        );
    }
    for what in &cluster.unread {
        let _ = writeln!(text, "not read: {what}");
    }
}
