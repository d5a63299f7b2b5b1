//! Admission policies and what binds them: what they name, their writer must be allowed to read.

use keelson_api::admissionregistration_k8s_io::v1::{
    MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding, ParamKind, ParamRef, ValidatingAdmissionPolicy,
    ValidatingAdmissionPolicyBinding,
};
use keelson_machinery::cel;
use keelson_machinery::field::{ErrorList, FieldError, Path};
use keelson_machinery::object::Object;
use keelson_machinery::status::StatusError;
use keelson_registry::write::Part;
use keelson_registry::{
    Answer, Confirming, Context, KindCode, LongValidation, MetadataChecks, RepeatedChecks, Strategy,
};

use super::GROUP;
use super::parameters::{ParameterKind, Reference, of_binding, of_policy};
use super::{json_path, policy_rules, rules};
use crate::cells;
use crate::conditions;
use crate::faults;
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
        .strategy(ValidatingPolicy)
        .metadata_checks(CHECKS)
        .cells(cells::admission::VALIDATING_ADMISSION_POLICY);
    code.kind::<MutatingAdmissionPolicy>()
        .strategy(MutatingPolicy)
        .metadata_checks(CHECKS)
        .cells(cells::admission::MUTATING_ADMISSION_POLICY);
    code.kind::<ValidatingAdmissionPolicyBinding>()
        .strategy(ValidatingBinding)
        .metadata_checks(CHECKS)
        .cells(cells::admission::VALIDATING_ADMISSION_POLICY_BINDING);
    code.kind::<MutatingAdmissionPolicyBinding>()
        .strategy(MutatingBinding)
        .metadata_checks(CHECKS)
        .cells(cells::admission::MUTATING_ADMISSION_POLICY_BINDING);
}

/// The rules of validating policies.
struct ValidatingPolicy;
/// The rules of mutating policies.
struct MutatingPolicy;
/// The rules of bindings of validating policies.
struct ValidatingBinding;
/// The rules of bindings of mutating policies.
struct MutatingBinding;

fn told(fault: Option<FieldError>) -> Result<ErrorList, StatusError> {
    Ok(fault.into_iter().collect())
}

fn shown(kind: &ParamKind) -> ParameterKind<'_> {
    ParameterKind {
        api_version: &kind.api_version,
        kind: &kind.kind,
    }
}

/// Asks about the kind that a policy names, unless it named the same before.
fn confirm_policy<'a>(
    context: &'a Context,
    new: Option<&'a ParamKind>,
    old: Option<&'a ParamKind>,
) -> Option<Answer<'a, ErrorList>> {
    let kind = new.filter(|_| !same(new, old))?;
    Some(Box::pin(async move { told(of_policy(context, &shown(kind)).await) }))
}

/// What a binding says of its parameters.
struct Bound<'a> {
    policy: &'a str,
    reference: Option<&'a ParamRef>,
}

impl<'a> Bound<'a> {
    /// Asks about what a binding names: always, since what it names may be another object of the same name by now.
    fn confirm<K>(self, context: &'a Context, plural: &'static str, kind_of: K) -> Option<Answer<'a, ErrorList>>
    where
        K: Fn(&dyn Object) -> Option<ParamKind> + 'a,
    {
        let reference = self.reference?;
        Some(Box::pin(async move {
            let policy = find(context, plural, self.policy).await;
            let kind = policy.map(|policy| kind_of(&*policy)).ok_or(());
            let reference = Reference {
                policy: self.policy,
                name: &reference.name,
                namespace: &reference.namespace,
                mutates: plural == MUTATING,
            };
            let kind = kind.as_ref().map(|kind| kind.as_ref().map(shown)).map_err(|none| *none);
            told(of_binding(context, &reference, kind).await)
        }))
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

/// Faults of a validating policy. What `old` has is let through.
fn of_validating(new: &ValidatingAdmissionPolicy, old: Option<&ValidatingAdmissionPolicy>) -> ErrorList {
    let old = old.map(|old| &old.spec);
    cel::many(|| {
        faults::at(&Path::new("spec"), |f| {
            policy_rules::validating(f, &new.metadata.name, &new.spec, old);
        })
    })
}

/// Faults of a mutating policy. What `old` has is let through.
fn of_mutating(new: &MutatingAdmissionPolicy, old: Option<&MutatingAdmissionPolicy>) -> ErrorList {
    let old = old.map(|old| &old.spec);
    cel::many(|| faults::at(&Path::new("spec"), |f| policy_rules::mutating(f, &new.spec, old)))
}

impl Strategy for ValidatingPolicy {
    type Object = ValidatingAdmissionPolicy;

    fn order_of_fields(&self) -> &'static [&'static str] {
        &ORDER
    }

    fn warnings(&self, new: &ValidatingAdmissionPolicy, _old: Option<&ValidatingAdmissionPolicy>) -> Vec<String> {
        rules::reserved_name(&new.metadata)
    }

    fn validate(&self, _context: &Context, object: &ValidatingAdmissionPolicy) -> ErrorList {
        of_validating(object, None)
    }

    fn long_validation(
        &self,
        new: &ValidatingAdmissionPolicy,
        old: Option<&ValidatingAdmissionPolicy>,
    ) -> Option<LongValidation> {
        let spec = &new.spec;
        let conditions = spec.match_conditions.len() + spec.variables.len();
        let expressions = conditions + 2 * spec.validations.len() + spec.audit_annotations.len();
        rules::long_validation(expressions, new, old, of_validating)
    }

    fn validate_update(
        &self,
        _context: &Context,
        new: &ValidatingAdmissionPolicy,
        old: &ValidatingAdmissionPolicy,
    ) -> ErrorList {
        of_validating(new, Some(old))
    }

    fn validate_status_update(
        &self,
        _context: &Context,
        new: &ValidatingAdmissionPolicy,
        _old: &ValidatingAdmissionPolicy,
    ) -> ErrorList {
        faults::at(&Path::new("status"), |f| {
            let checked = new.status.type_checking.iter();
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
            conditions::check(f, &new.status.conditions);
        })
    }

    fn confirm<'a>(
        &'a self,
        context: &'a Context,
        write: Confirming<'a, ValidatingAdmissionPolicy>,
        faulty: bool,
    ) -> Option<Answer<'a, ErrorList>> {
        let kind = |o: &'a ValidatingAdmissionPolicy| o.spec.param_kind.as_deref();
        is_main(&write, faulty).then(|| confirm_policy(context, kind(write.new), write.old.and_then(kind)))?
    }

    fn reset_fields(&self, part: Part<'_>) -> &'static [&'static [&'static str]] {
        StatusAlone.reset_fields(part)
    }

    fn prepare_for_status_update(
        &self,
        context: &Context,
        new: &mut ValidatingAdmissionPolicy,
        old: &ValidatingAdmissionPolicy,
    ) {
        StatusAlone.prepare_for_status_update(context, new, old);
    }
}

impl Strategy for MutatingPolicy {
    type Object = MutatingAdmissionPolicy;

    fn order_of_fields(&self) -> &'static [&'static str] {
        &ORDER
    }

    fn warnings(&self, new: &MutatingAdmissionPolicy, _old: Option<&MutatingAdmissionPolicy>) -> Vec<String> {
        rules::reserved_name(&new.metadata)
    }

    fn validate(&self, _context: &Context, object: &MutatingAdmissionPolicy) -> ErrorList {
        of_mutating(object, None)
    }

    fn long_validation(
        &self,
        new: &MutatingAdmissionPolicy,
        old: Option<&MutatingAdmissionPolicy>,
    ) -> Option<LongValidation> {
        let spec = &new.spec;
        let expressions = spec.match_conditions.len() + spec.variables.len() + spec.mutations.len();
        rules::long_validation(expressions, new, old, of_mutating)
    }

    fn validate_update(
        &self,
        _context: &Context,
        new: &MutatingAdmissionPolicy,
        old: &MutatingAdmissionPolicy,
    ) -> ErrorList {
        of_mutating(new, Some(old))
    }

    fn confirm<'a>(
        &'a self,
        context: &'a Context,
        write: Confirming<'a, MutatingAdmissionPolicy>,
        faulty: bool,
    ) -> Option<Answer<'a, ErrorList>> {
        let kind = |o: &'a MutatingAdmissionPolicy| o.spec.param_kind.as_deref();
        is_main(&write, faulty).then(|| confirm_policy(context, kind(write.new), write.old.and_then(kind)))?
    }
}

impl Strategy for ValidatingBinding {
    type Object = ValidatingAdmissionPolicyBinding;

    fn order_of_fields(&self) -> &'static [&'static str] {
        &ORDER
    }

    fn warnings(
        &self,
        new: &ValidatingAdmissionPolicyBinding,
        _old: Option<&ValidatingAdmissionPolicyBinding>,
    ) -> Vec<String> {
        rules::reserved_name(&new.metadata)
    }

    fn validate(&self, _context: &Context, object: &ValidatingAdmissionPolicyBinding) -> ErrorList {
        let spec = &object.spec;
        faults::at(&Path::new("spec"), |f| {
            let matched = spec.match_resources.as_deref();
            policy_rules::binding(f, &spec.policy_name, spec.param_ref.as_deref(), matched);
            policy_rules::actions(f, &spec.validation_actions);
        })
    }

    fn validate_update(
        &self,
        context: &Context,
        new: &ValidatingAdmissionPolicyBinding,
        _old: &ValidatingAdmissionPolicyBinding,
    ) -> ErrorList {
        self.validate(context, new)
    }

    fn confirm<'a>(
        &'a self,
        context: &'a Context,
        write: Confirming<'a, ValidatingAdmissionPolicyBinding>,
        faulty: bool,
    ) -> Option<Answer<'a, ErrorList>> {
        if !is_main(&write, faulty) {
            return None;
        }
        let spec = &write.new.spec;
        let bound = Bound {
            policy: &spec.policy_name,
            reference: spec.param_ref.as_deref(),
        };
        bound.confirm(context, VALIDATING, |policy| {
            typed::<ValidatingAdmissionPolicy>(policy)?
                .spec
                .param_kind
                .as_deref()
                .cloned()
        })
    }
}

impl Strategy for MutatingBinding {
    type Object = MutatingAdmissionPolicyBinding;

    fn order_of_fields(&self) -> &'static [&'static str] {
        &ORDER
    }

    fn warnings(
        &self,
        new: &MutatingAdmissionPolicyBinding,
        _old: Option<&MutatingAdmissionPolicyBinding>,
    ) -> Vec<String> {
        rules::reserved_name(&new.metadata)
    }

    fn validate(&self, _context: &Context, object: &MutatingAdmissionPolicyBinding) -> ErrorList {
        let spec = &object.spec;
        faults::at(&Path::new("spec"), |f| {
            let matched = spec.match_resources.as_deref();
            policy_rules::binding(f, &spec.policy_name, spec.param_ref.as_deref(), matched);
            if let Some(matched) = matched {
                rules::mutable(&mut f.at("matchResources"), matched);
            }
        })
    }

    fn validate_update(
        &self,
        context: &Context,
        new: &MutatingAdmissionPolicyBinding,
        _old: &MutatingAdmissionPolicyBinding,
    ) -> ErrorList {
        self.validate(context, new)
    }

    fn confirm<'a>(
        &'a self,
        context: &'a Context,
        write: Confirming<'a, MutatingAdmissionPolicyBinding>,
        faulty: bool,
    ) -> Option<Answer<'a, ErrorList>> {
        if !is_main(&write, faulty) {
            return None;
        }
        let spec = &write.new.spec;
        let bound = Bound {
            policy: &spec.policy_name,
            reference: spec.param_ref.as_deref(),
        };
        bound.confirm(context, MUTATING, |policy| {
            typed::<MutatingAdmissionPolicy>(policy)?
                .spec
                .param_kind
                .as_deref()
                .cloned()
        })
    }
}
