package schema

import (
	"encoding/base64"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/gitfleet/gitfleet/gitsource/hub/document"
)

func init() {
	rules[reflect.TypeFor[corev1.ConfigMap]()] = checkConfigMap
	rules[reflect.TypeFor[corev1.Secret]()] = checkSecret
	of(checkClaim)
	of(checkRoleBinding)
	of(checkClusterRoleBinding)
	of(checkPolicyRule)
	of(checkAutoscaler)
	of(checkBudget)
	of(checkPriorityClass)
	of(func(c *comparison, spec *corev1.ResourceQuotaSpec, p *document.FieldPath) {
		checkQuantities(c, spec.Hard, p.Child("hard"))
	})
	of(func(c *comparison, term *corev1.PodAffinityTerm, p *document.FieldPath) {
		require(c, term.TopologyKey, p.Child("topologyKey"))
	})
	of(func(c *comparison, class *storagev1.StorageClass, p *document.FieldPath) {
		require(c, class.Provisioner, p.Child("provisioner"))
	})
	of(func(c *comparison, class *nodev1.RuntimeClass, p *document.FieldPath) {
		require(c, class.Handler, p.Child("handler"))
	})
	of(func(c *comparison, class *networkingv1.IngressClass, p *document.FieldPath) {
		require(c, class.Spec.Controller, p.Child("spec", "controller"))
		if name := class.Spec.Controller; name != "" && len(validation.IsDomainPrefixedPath(nil, name)) > 0 {
			c.report(p.Child("spec", "controller"), fmt.Sprintf("%q is not the name of a controller; write a domain and a path such as k8s.io/ingress-nginx", name))
		}
	})
	of(func(c *comparison, hook *admissionregistrationv1.ValidatingWebhook, p *document.FieldPath) {
		checkWebhook(c, hook.Name, &hook.ClientConfig, hook.AdmissionReviewVersions, p)
	})
	of(func(c *comparison, hook *admissionregistrationv1.MutatingWebhook, p *document.FieldPath) {
		checkWebhook(c, hook.Name, &hook.ClientConfig, hook.AdmissionReviewVersions, p)
	})
	of(func(c *comparison, lifecycle *corev1.LifecycleHandler, p *document.FieldPath) {
		exactlyOne(c, *lifecycle, false, p, "handler")
	})
}

func checkWebhook(c *comparison, name string, client *admissionregistrationv1.WebhookClientConfig, versions []string, p *document.FieldPath) {
	if name != "" && len(validation.IsFullyQualifiedName(nil, name)) > 0 {
		c.report(p.Child("name"), fmt.Sprintf("%q is not the name of a webhook; write at least three parts such as pods.example.com", name))
	}
	exactlyOne(c, *client, false, p.Child("clientConfig"), "url or service")
	if len(versions) == 0 {
		c.missing(p.Child("admissionReviewVersions"), "add those that the webhook understands, such as v1")
	}
}

func checkConfigMap(c *comparison, object map[string]any, p *document.FieldPath) {
	data, binary := c.keys(object, "data", p), c.keys(object, "binaryData", p)
	checkSize(c, textSize(data)+dataSize(binary), p.Child("data"))
	for _, key := range slices.Sorted(maps.Keys(data)) {
		if _, twice := binary[key]; twice {
			c.report(p.Child("binaryData", key), "data has the same key; remove one of them")
		}
	}
}

// secretKeys are the keys that Secrets of a type need.
var secretKeys = map[corev1.SecretType][]string{
	corev1.SecretTypeTLS:              {corev1.TLSCertKey, corev1.TLSPrivateKeyKey},
	corev1.SecretTypeSSHAuth:          {corev1.SSHAuthPrivateKey},
	corev1.SecretTypeDockercfg:        {corev1.DockerConfigKey},
	corev1.SecretTypeDockerConfigJson: {corev1.DockerConfigJsonKey},
}

func checkSecret(c *comparison, object map[string]any, p *document.FieldPath) {
	data, text := c.keys(object, "data", p), c.keys(object, "stringData", p)
	checkSize(c, dataSize(data)+textSize(text), p.Child("data"))
	kind, _ := object["type"].(string)
	for _, key := range secretKeys[corev1.SecretType(kind)] {
		if data[key] == nil && text[key] == nil {
			c.missing(p.Child("data", key), "a Secret of the type "+kind+" needs it")
		}
	}
}

// checkSize reports values that take more than an API server accepts in a ConfigMap or a Secret.
func checkSize(c *comparison, size int, p *document.FieldPath) {
	if size > corev1.MaxSecretSize {
		c.report(p, fmt.Sprintf("is larger than %d KiB; split the object", corev1.MaxSecretSize>>10))
	}
}

// textSize returns the length of the texts in a mapping.
func textSize(values map[string]any) (size int) {
	for _, v := range values {
		text, _ := v.(string)
		size += len(text)
	}
	return size
}

// dataSize returns the length of the texts in a mapping once they are decoded from base64.
func dataSize(values map[string]any) (size int) {
	for _, v := range values {
		text, _ := v.(string)
		size += base64.RawStdEncoding.DecodedLen(len(strings.TrimRight(text, "=")))
	}
	return size
}

// keys returns the values of a field, and checks their keys.
func (c *comparison) keys(object map[string]any, field string, p *document.FieldPath) map[string]any {
	values, _ := object[field].(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if reasons := validation.IsConfigMapKey(key); len(reasons) > 0 {
			reason, _, _ := strings.Cut(reasons[0], " (e.g. ")
			c.report(p.Child(field, key), "is not a valid key: "+reason)
		}
	}
	return values
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
	checkSubjects(c, binding.Subjects, false, p.Child("subjects"))
}

// checkSubjects checks the subjects of a binding. In a RoleBinding the namespace of a ServiceAccount
// may be left out.
func checkSubjects(c *comparison, subjects []rbacv1.Subject, namespaced bool, p *document.FieldPath) {
	for i, s := range subjects {
		at := p.At(i)
		require(c, s.Name, at.Child("name"))
		c.expect(at.Child("kind"), enumFault(s.Kind, []string{rbacv1.ServiceAccountKind, rbacv1.UserKind, rbacv1.GroupKind}))
		if namespaced && s.Kind == rbacv1.ServiceAccountKind {
			require(c, s.Namespace, at.Child("namespace"))
		}
	}
}

func checkClusterRoleBinding(c *comparison, binding *rbacv1.ClusterRoleBinding, p *document.FieldPath) {
	checkSubjects(c, binding.Subjects, true, p.Child("subjects"))
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
	checkShare(c, spec.MinAvailable, p.Child("minAvailable"))
	checkShare(c, spec.MaxUnavailable, p.Child("maxUnavailable"))
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
