//! Policies as YAML.

use super::cel;
use crate::manifests::RenderError;
use crate::manifests::pieces::LABELS;
use crate::manifests::text::{indent, scalar};

/// Of an expression: `expressionSizeCodePointLimit` in github.com/google/cel-go/parser.
pub(in crate::manifests) const MOST_CHARACTERS: usize = 100_000;

/// A ValidatingAdmissionPolicy.
pub(super) struct Policy {
    /// Its own and its binding's.
    pub(super) name: String,
    /// What it is for: lines of comment.
    pub(super) about: &'static str,
    /// `matchConstraints.resourceRules`.
    pub(super) resources: &'static str,
    /// All must be so for the policy to have a say.
    pub(super) conditions: Vec<Named>,
    /// Evaluated when they are used.
    pub(super) variables: Vec<Named>,
    /// All must be so. The first that is not gives the message.
    pub(super) validations: Vec<Validation>,
}

/// An expression that has a name.
pub(super) struct Named {
    /// Lines of comment, or none.
    pub(super) about: &'static str,
    pub(super) name: &'static str,
    pub(super) expression: String,
}

/// What must be so.
pub(super) struct Validation {
    /// Lines of comment, or none.
    pub(super) about: &'static str,
    pub(super) expression: String,
    pub(super) message: Message,
}

/// What is said where it is not so.
pub(super) enum Message {
    Text(String),
    /// An expression that gives it. It is evaluated for every request that the policy has a say in.
    Expression(String),
}

impl Message {
    /// The same after these words.
    fn after(self, words: &str) -> Self {
        match self {
            Self::Text(text) => Self::Text(format!("{words}{text}")),
            Self::Expression(expression) => {
                Self::Expression(format!("{} + {expression}", cel::string(words)))
            }
        }
    }
}

impl Policy {
    /// All its messages begin with these words.
    pub(super) fn signed(mut self, words: &str) -> Self {
        let sign = |validation: Validation| Validation {
            message: validation.message.after(words),
            ..validation
        };
        self.validations = self.validations.into_iter().map(sign).collect();
        self
    }

    /// As long as the server takes it.
    pub(super) fn checked(self) -> Result<Self, RenderError> {
        let lengths = self
            .variables
            .iter()
            .map(|variable| variable.expression.chars().count());
        match lengths.max() {
            Some(length) if length > MOST_CHARACTERS => Err(RenderError::TooLong {
                policy: self.name,
                length,
            }),
            _ => Ok(self),
        }
    }

    /// The policy and its binding.
    pub(super) fn documents(&self) -> [String; 2] {
        let binding = self.binding(&self.name, "  validationActions: [Deny]\n");
        [self.yaml(), binding]
    }

    /// A binding of it, with the rest of the binding's `spec`.
    pub(super) fn binding(&self, name: &str, rest: &str) -> String {
        let policy = &self.name;
        format!(
            "apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
{LABELS}  name: {name}
spec:
  policyName: {policy}
{rest}"
        )
    }

    /// The policy alone, which does nothing without a binding.
    pub(super) fn yaml(&self) -> String {
        let Self {
            name, resources, ..
        } = self;
        format!(
            "{}apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
{LABELS}  name: {name}
spec:
  # What cannot be judged is refused.
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
{}  matchConditions:
{}  variables:
{}  validations:
{}",
            self.about,
            indent(resources, 4),
            named(&self.conditions),
            named(&self.variables),
            list(&self.validations, Validation::yaml),
        )
    }
}

impl Validation {
    fn yaml(&self) -> String {
        let message = match &self.message {
            Message::Text(text) => format!("  message: {}\n", scalar(text)),
            Message::Expression(expression) => field("messageExpression", expression),
        };
        format!(
            "{}- {}{message}  reason: Forbidden\n",
            self.about,
            field("expression", &self.expression).trim_start(),
        )
    }
}

fn named(expressions: &[Named]) -> String {
    list(expressions, |named| {
        format!(
            "- name: {}\n{}{}",
            named.name,
            indent(named.about, 2),
            field("expression", &named.expression)
        )
    })
}

fn list<T>(items: &[T], yaml: impl Fn(&T) -> String) -> String {
    let items: Vec<_> = items.iter().map(yaml).collect();
    indent(&items.concat(), 2)
}

/// A field of an item, as a block.
fn field(name: &str, expression: &str) -> String {
    format!("  {name}: |-\n{}", indent(expression, 4))
}
