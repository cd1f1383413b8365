package schema

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/gitfleet/gitfleet/gitsource/hub/document"
)

func init() {
	rules[reflect.TypeFor[corev1.ConfigMap]()] = keysOf("data", "binaryData")
	rules[reflect.TypeFor[corev1.Secret]()] = keysOf("data", "stringData")
	of(checkClaim)
	of(checkRoleBinding)
	of(checkClusterRoleBinding)
	of(checkPolicyRule)
	of(checkAutoscaler)
	of(checkBudget)
	of(checkPriorityClass)
}

// keysOf returns a rule for the keys of fields.
func keysOf(fields ...string) rule {
	return func(c *comparison, object map[string]any, p *document.FieldPath) {
		for _, field := range fields {
			data, _ := object[field].(map[string]any)
			for _, key := range slices.Sorted(maps.Keys(data)) {
				if reasons := validation.IsConfigMapKey(key); len(reasons) > 0 {
					c.report(p.Child(field, key), "is not a valid key: "+reasons[0])
				}
			}
		}
	}
}

func checkClaim(c *comparison, spec *corev1.PersistentVolumeClaimSpec, p *document.FieldPath) {
	if len(spec.AccessModes) == 0 {
		c.missing(p.Child("accessModes"), "add one such as ReadWriteOnce")
	}
	switch size, set := spec.Resources.Requests[corev1.ResourceStorage]; {
	case !set:
		c.missing(p.Child("resources", "requests", "storage"), "add it")
	case size.Sign() <= 0:
		c.report(p.Child("resources", "requests", "storage"), "must be more than zero")
	}
}

func checkRoleBinding(c *comparison, binding *rbacv1.RoleBinding, p *document.FieldPath) {
	checkRoleRef(c, &binding.RoleRef, p.Child("roleRef"), "Role", "ClusterRole")
	checkSubjects(c, binding.Subjects, p.Child("subjects"))
}

func checkSubjects(c *comparison, subjects []rbacv1.Subject, p *document.FieldPath) {
	for i, s := range subjects {
		at := p.At(i)
		require(c, s.Name, at.Child("name"))
		c.expect(at.Child("kind"), enumFault(s.Kind, []string{rbacv1.ServiceAccountKind, rbacv1.UserKind, rbacv1.GroupKind}))
		if s.Kind == rbacv1.ServiceAccountKind && s.Namespace == "" {
			require(c, s.Namespace, at.Child("namespace"))
		}
	}
}

func checkClusterRoleBinding(c *comparison, binding *rbacv1.ClusterRoleBinding, p *document.FieldPath) {
	checkSubjects(c, binding.Subjects, p.Child("subjects"))
	checkRoleRef(c, &binding.RoleRef, p.Child("roleRef"), "ClusterRole")
}

func checkRoleRef(c *comparison, ref *rbacv1.RoleRef, p *document.FieldPath, kinds ...string) {
	require(c, ref.Name, p.Child("name"))
	if ref.APIGroup != "" && ref.APIGroup != rbacv1.GroupName {
		c.report(p.Child("apiGroup"), "must be "+rbacv1.GroupName)
	}
	if !slices.Contains(kinds, ref.Kind) {
		c.expect(p.Child("kind"), enumFault(ref.Kind, kinds))
	}
}

func checkPolicyRule(c *comparison, r *rbacv1.PolicyRule, p *document.FieldPath) {
	if len(r.Verbs) == 0 {
		c.missing(p.Child("verbs"), "add verbs")
	}
	switch {
	case len(r.NonResourceURLs) > 0 && (len(r.APIGroups) > 0 || len(r.Resources) > 0 || len(r.ResourceNames) > 0):
		c.report(p, "a rule is about resources or about nonResourceURLs; write two rules")
	case len(r.NonResourceURLs) > 0:
	case len(r.APIGroups) == 0:
		c.missing(p.Child("apiGroups"), `the group of Pods and the like is ""`)
	case len(r.Resources) == 0:
		c.missing(p.Child("resources"), "add resources")
	}
}

func checkAutoscaler(c *comparison, spec *autoscalingv2.HorizontalPodAutoscalerSpec, p *document.FieldPath) {
	require(c, spec.ScaleTargetRef.Kind, p.Child("scaleTargetRef", "kind"))
	require(c, spec.ScaleTargetRef.Name, p.Child("scaleTargetRef", "name"))
	low := int32(1)
	if spec.MinReplicas != nil {
		low = *spec.MinReplicas
		notNegative(c, spec.MinReplicas, p.Child("minReplicas"))
	}
	if spec.MaxReplicas < max(low, 1) {
		c.report(p.Child("maxReplicas"), fmt.Sprintf("must be at least %d", max(low, 1)))
	}
}

func checkBudget(c *comparison, spec *policyv1.PodDisruptionBudgetSpec, p *document.FieldPath) {
	if spec.MinAvailable != nil && spec.MaxUnavailable != nil {
		c.report(p, "has minAvailable and maxUnavailable, but only one of them is allowed; keep one")
	}
}

// highestUserPriority is the highest priority that is not one of Kubernetes' own.
const highestUserPriority = 1_000_000_000

func checkPriorityClass(c *comparison, class *schedulingv1.PriorityClass, p *document.FieldPath) {
	if class.Value > highestUserPriority && class.Name != "system-cluster-critical" && class.Name != "system-node-critical" {
		c.report(p.Child("value"), fmt.Sprintf("must not be more than %d", highestUserPriority))
	}
}
