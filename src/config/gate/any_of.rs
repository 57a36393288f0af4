use schemars::JsonSchema;
use serde::Serialize;

use super::{Check, after, kinds};
use crate::config::read::{Fields, Names};
use crate::syntax::{DNS_LABEL, Form};

/// A gate that is open while at least one of its checks is.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct Group {
    /// Unique among the gates of its rule.
    #[schemars(transform = Form(&DNS_LABEL))]
    pub name: String,
    /// A group, open while at least one member is. Groups do not nest.
    #[schemars(length(min = 1))]
    pub any_of: Vec<Check>,
}

impl Group {
    pub(super) fn read<'t>(fields: &mut Fields<'_, 't>, names: &mut Names<'t>) -> Self {
        let mut member_names = Names::default();
        Self {
            name: fields.name(names),
            any_of: fields.required("anyOf", |members| {
                members.filled_list(|member| {
                    member.mapping("a member of anyOf", |fields| {
                        let kinds = kinds(fields);
                        let check = Check::read(fields, &kinds, &mut member_names);
                        after::refuse(fields);
                        check
                    })
                })
            }),
        }
    }
}
