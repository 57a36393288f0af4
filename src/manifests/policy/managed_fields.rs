//! Whom fields of a Node belong to: what managedFields say that somebody applied goes as soon as they apply again without
//! it.

use super::yaml::{Message, Validation};

/// Taints are said to belong to somebody who applies, and were not before.
pub(super) const NEW_OF_TAINTS: &str =
    "dyn(object.metadata).?managedFields.orValue([]).exists(m, m.operation == 'Apply' &&
  m.?fieldsV1[?'f:spec'][?'f:taints'].hasValue() &&
  !dyn(oldObject.metadata).?managedFields.orValue([]).exists(old, old.operation == 'Apply' &&
    old.?manager == m.?manager && old.?subresource == m.?subresource &&
    old.?fieldsV1[?'f:spec'][?'f:taints'].hasValue()))";

/// With an account of others.
pub(super) fn of_taints() -> Validation {
    Validation {
        about: "# Taints that managedFields say somebody applied go as soon as they apply again without them.\n",
        expression: format!("!{NEW_OF_TAINTS}"),
        message: Message::Text(
            "this account may not apply taints, nor say in managedFields that others have".into(),
        ),
    }
}

/// With an account that is held to untaint's work.
pub(super) fn of_all() -> Validation {
    Validation {
        about: "# What managedFields say that somebody applied goes as soon as they apply again without it. So whoever applies may\n\
                # lose taints to this account, and come to own nothing.\n",
        expression: "dyn(object.metadata).?managedFields.orValue([]).all(m, m.operation != 'Apply' ||
  dyn(oldObject.metadata).?managedFields.orValue([]).exists(old, old.operation == 'Apply' &&
    old.?manager == m.?manager && old.?subresource == m.?subresource &&
    m.fieldsV1.all(f, f in old.fieldsV1 && (m.fieldsV1[f] == old.fieldsV1[f] ||
      f == 'f:spec' && m.fieldsV1[f].all(g, g in old.fieldsV1[f] && m.fieldsV1[f][g] == old.fieldsV1[f][g])))))"
            .into(),
        message: Message::Text(
            "this account may not apply, nor change in managedFields what others have applied".into(),
        ),
    }
}
