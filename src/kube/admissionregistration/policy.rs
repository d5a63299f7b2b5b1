//! Admission policies and what binds them: what they name, their writer must be allowed to read.

use std::marker::PhantomData;

use keelson_api::admissionregistration_k8s_io::v1::{
    MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding, ParamKind, ParamRef, ValidatingAdmissionPolicy,
    ValidatingAdmissionPolicyBinding,
};
use keelson_machinery::cel;
use keelson_machinery::field::{ErrorList, FieldError};
use keelson_machinery::object::Object;
use keelson_machinery::status::StatusError;
use keelson_registry::write::Part;
use keelson_registry::{
    Answer, Confirming, Context, KindCode, LongValidation, MetadataChecks, RepeatedChecks, Strategy,
};

use super::GROUP;
use super::parameters::{self, ParameterKind, Reference};
use super::{json_path, policy_rules, rules};
use crate::cells;
use crate::conditions;
use crate::faults::{self, Faults};
use crate::metadata;
use crate::status_alone::StatusAlone;
use crate::typed::{same, typed};

pub const VALIDATING: &str = "validatingadmissionpolicies";
pub const MUTATING: &str = "mutatingadmissionpolicies";

const CHECKS: MetadataChecks = metadata::any_finalizer(RepeatedChecks::WHOLE);

/// kube-apiserver looks at what a policy does by itself before it looks at its rules.
const ORDER: [&str; 2] = ["failurePolicy", "matchPolicy"];

/// Registers the rules of policies and their bindings.
pub fn register(code: &mut KindCode) {
    code.kind::<ValidatingAdmissionPolicy>()
        .strategy(Policy::<ValidatingAdmissionPolicy>(PhantomData))
        .metadata_checks(CHECKS)
        .cells(cells::admission::VALIDATING_ADMISSION_POLICY);
    code.kind::<MutatingAdmissionPolicy>()
        .strategy(Policy::<MutatingAdmissionPolicy>(PhantomData))
        .metadata_checks(CHECKS)
        .cells(cells::admission::MUTATING_ADMISSION_POLICY);
    code.kind::<ValidatingAdmissionPolicyBinding>()
        .strategy(Binding::<ValidatingAdmissionPolicyBinding>(PhantomData))
        .metadata_checks(CHECKS)
        .cells(cells::admission::VALIDATING_ADMISSION_POLICY_BINDING);
    code.kind::<MutatingAdmissionPolicyBinding>()
        .strategy(Binding::<MutatingAdmissionPolicyBinding>(PhantomData))
        .metadata_checks(CHECKS)
        .cells(cells::admission::MUTATING_ADMISSION_POLICY_BINDING);
}

/// The rules of policies, of both kinds.
struct Policy<P>(PhantomData<fn() -> P>);

/// The rules of what binds them, of both kinds.
struct Binding<B>(PhantomData<fn() -> B>);

/// What the kinds of policies differ in.
trait PolicyKind: Object + Clone {
    /// The kind of its parameters.
    fn parameters(&self) -> Option<&ParamKind>;

    /// How many expressions it has.
    fn expressions(&self) -> usize;

    /// Checks it. What `old` has is let through. `f` stands at the specification.
    fn check(f: &mut Faults<'_>, new: &Self, old: Option<&Self>);

    /// Checks its status, if it has one. `f` stands there.
    fn check_status(_f: &mut Faults<'_>, _policy: &Self) {}
}

impl PolicyKind for ValidatingAdmissionPolicy {
    fn parameters(&self) -> Option<&ParamKind> {
        self.spec.param_kind.as_deref()
    }

    fn expressions(&self) -> usize {
        let spec = &self.spec;
        let conditions = spec.match_conditions.len() + spec.variables.len();
        conditions + 2 * spec.validations.len() + spec.audit_annotations.len()
    }

    fn check(f: &mut Faults<'_>, new: &Self, old: Option<&Self>) {
        policy_rules::validating(f, &new.metadata.name, &new.spec, old.map(|old| &old.spec));
    }

    fn check_status(f: &mut Faults<'_>, policy: &Self) {
        let checked = policy.status.type_checking.iter();
        let warnings = checked.flat_map(|checked| &checked.expression_warnings);
        f.at("typeChecking").each("expressionWarnings", warnings, |f, warning| {
            f.at("warning").filled(&warning.warning);
            let (mut f, path) = (f.at("fieldRef"), warning.field_ref.trim());
            if f.filled(path)
                && let Err(why) = json_path::check(path)
            {
                f.invalid(path, format!("invalid JSONPath: {why}"));
            }
        });
        conditions::check(f, &policy.status.conditions);
    }
}

impl PolicyKind for MutatingAdmissionPolicy {
    fn parameters(&self) -> Option<&ParamKind> {
        self.spec.param_kind.as_deref()
    }

    fn expressions(&self) -> usize {
        let spec = &self.spec;
        spec.match_conditions.len() + spec.variables.len() + spec.mutations.len()
    }

    fn check(f: &mut Faults<'_>, new: &Self, old: Option<&Self>) {
        policy_rules::mutating(f, &new.spec, old.map(|old| &old.spec));
    }
}

/// Faults of a policy. What `old` has is let through.
fn of_policy<P: PolicyKind>(new: &P, old: Option<&P>) -> ErrorList {
    cel::many(|| faults::of_spec(|f| P::check(f, new, old)))
}

impl<P: PolicyKind> Strategy for Policy<P> {
    type Object = P;

    fn order_of_fields(&self) -> &'static [&'static str] {
        &ORDER
    }

    fn warnings(&self, new: &P, _old: Option<&P>) -> Vec<String> {
        rules::reserved_name(new.meta())
    }

    fn validate(&self, _context: &Context, new: &P, old: Option<&P>) -> ErrorList {
        of_policy(new, old)
    }

    fn long_validation(&self, new: &P, old: Option<&P>) -> Option<LongValidation> {
        rules::long_validation(new.expressions(), new, old, of_policy)
    }

    fn validate_status_update(&self, _context: &Context, new: &P, _old: &P) -> ErrorList {
        faults::of_status(|f| P::check_status(f, new))
    }

    /// Asks about the kind that a policy names, unless it named the same before.
    fn confirm<'a>(
        &'a self,
        context: &'a Context,
        write: Confirming<'a, P>,
        faulty: bool,
    ) -> Option<Answer<'a, ErrorList>> {
        let kind = write.new.parameters()?;
        if !is_main(&write, faulty) || same(Some(kind), write.old.and_then(P::parameters)) {
            return None;
        }
        Some(Box::pin(async move {
            told(parameters::of_policy(context, &shown(kind)).await)
        }))
    }

    fn reset_fields(&self, part: Part<'_>) -> &'static [&'static [&'static str]] {
        StatusAlone.reset_fields(part)
    }

    fn prepare_for_status_update(&self, context: &Context, new: &mut P, old: &P) {
        StatusAlone.prepare_for_status_update(context, new, old);
    }
}

/// What the kinds of bindings differ in.
trait BindingKind: Object {
    /// The policies that they bind.
    const POLICIES: &'static str;

    /// The name of the policy, and its parameters.
    fn bound(&self) -> (&str, Option<&ParamRef>);

    /// The kind of parameters that a policy has.
    fn parameters(policy: &dyn Object) -> Option<&ParamKind>;

    /// Checks it. `f` stands at the specification.
    fn check(&self, f: &mut Faults<'_>);
}

impl BindingKind for ValidatingAdmissionPolicyBinding {
    const POLICIES: &'static str = VALIDATING;

    fn bound(&self) -> (&str, Option<&ParamRef>) {
        (&self.spec.policy_name, self.spec.param_ref.as_deref())
    }

    fn parameters(policy: &dyn Object) -> Option<&ParamKind> {
        typed::<ValidatingAdmissionPolicy>(policy)?.parameters()
    }

    fn check(&self, f: &mut Faults<'_>) {
        policy_rules::binding(f, self.bound(), self.spec.match_resources.as_deref());
        policy_rules::actions(f, &self.spec.validation_actions);
    }
}

impl BindingKind for MutatingAdmissionPolicyBinding {
    const POLICIES: &'static str = MUTATING;

    fn bound(&self) -> (&str, Option<&ParamRef>) {
        (&self.spec.policy_name, self.spec.param_ref.as_deref())
    }

    fn parameters(policy: &dyn Object) -> Option<&ParamKind> {
        typed::<MutatingAdmissionPolicy>(policy)?.parameters()
    }

    fn check(&self, f: &mut Faults<'_>) {
        let matched = self.spec.match_resources.as_deref();
        policy_rules::binding(f, self.bound(), matched);
        f.some("matchResources", matched, rules::mutable);
    }
}

impl<B: BindingKind> Strategy for Binding<B> {
    type Object = B;

    fn order_of_fields(&self) -> &'static [&'static str] {
        &ORDER
    }

    fn warnings(&self, new: &B, _old: Option<&B>) -> Vec<String> {
        rules::reserved_name(new.meta())
    }

    fn validate(&self, _context: &Context, new: &B, _old: Option<&B>) -> ErrorList {
        faults::of_spec(|f| new.check(f))
    }

    /// Asks about what a binding names: always, since what it names may be another object of the same name by now.
    fn confirm<'a>(
        &'a self,
        context: &'a Context,
        write: Confirming<'a, B>,
        faulty: bool,
    ) -> Option<Answer<'a, ErrorList>> {
        let (policy, reference) = write.new.bound();
        let reference = reference.filter(|_| is_main(&write, faulty))?;
        Some(Box::pin(async move {
            let found = find(context, B::POLICIES, policy).await;
            let kind = found
                .as_deref()
                .map(|policy| B::parameters(policy).map(shown))
                .ok_or(());
            let reference = Reference {
                policy,
                name: &reference.name,
                namespace: &reference.namespace,
                mutates: B::POLICIES == MUTATING,
            };
            told(parameters::of_binding(context, &reference, kind).await)
        }))
    }
}

fn told(fault: Option<FieldError>) -> Result<ErrorList, StatusError> {
    Ok(fault.into_iter().collect())
}

fn shown(kind: &ParamKind) -> ParameterKind<'_> {
    ParameterKind {
        api_version: &kind.api_version,
        kind: &kind.kind,
    }
}

/// The policy of this name; who can't find it out learns what an absent one brings.
async fn find(context: &Context, plural: &str, name: &str) -> Option<Box<dyn Object>> {
    let registry = context.registry()?;
    let found = registry.resource(GROUP, plural)?.find("", name).await;
    found.ok().flatten().map(|stored| stored.object)
}

fn is_main<O>(write: &Confirming<'_, O>, faulty: bool) -> bool {
    write.part == Part::Main && !faulty
}
