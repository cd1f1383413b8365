package schema

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/gitfleet/gitfleet/gitsource/hub/document"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/variable"
)

// A nameRule returns what is wrong with the name of an object.
type nameRule func(name string, object map[string]any) []string

const rbacGroup = "rbac.authorization.k8s.io"

// nameRules are the rules for the names of kinds whose names need not be DNS subdomains, or not
// only that. A nil rule allows every name.
var nameRules = map[api.GroupKind]nameRule{
	{Kind: "Namespace"}:                                               dnsLabel,
	{Kind: "Service"}:                                                 dnsLabel, // before Kubernetes 1.36 it could not begin with a digit
	{Group: "apps", Kind: "StatefulSet"}:                              dnsLabel,
	{Group: "batch", Kind: "Job"}:                                     jobName,
	{Group: "batch", Kind: "CronJob"}:                                 cronJobName,
	{Group: rbacGroup, Kind: "Role"}:                                  pathSegment,
	{Group: rbacGroup, Kind: "RoleBinding"}:                           pathSegment,
	{Group: rbacGroup, Kind: "ClusterRole"}:                           pathSegment,
	{Group: rbacGroup, Kind: "ClusterRoleBinding"}:                    pathSegment,
	{Group: "scheduling.k8s.io", Kind: "PriorityClass"}:               priorityClassName,
	{Group: "policy", Kind: "PodDisruptionBudget"}:                    pathSegment,
	{Group: "networking.k8s.io", Kind: "IPAddress"}:                   ipAddressName,
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}: definitionName,
	{Group: "apiregistration.k8s.io", Kind: "APIService"}:             apiServiceName,
	{Group: "certificates.k8s.io", Kind: "CertificateSigningRequest"}: nil,
	{Group: "certificates.k8s.io", Kind: "ClusterTrustBundle"}:        nil, // its prefix is that of its signer
	{Group: "internal.apiserver.k8s.io", Kind: "StorageVersion"}:      nil,
}

func subdomain(name string, _ map[string]any) []string {
	return apivalidation.NameIsDNSSubdomain(name, false)
}

func dnsLabel(name string, _ map[string]any) []string {
	return apivalidation.NameIsDNSLabel(name, false)
}

func pathSegment(name string, _ map[string]any) []string { return content.IsPathSegmentName(name) }

// jobName allows no more than the value of the label job-name, which the pods have.
func jobName(name string, object map[string]any) []string {
	return append(subdomain(name, object), atMost(name, validation.LabelValueMaxLength)...)
}

// cronJobName leaves space for the suffix of the Jobs.
func cronJobName(name string, object map[string]any) []string {
	return append(subdomain(name, object), atMost(name, validation.DNS1035LabelMaxLength-11)...)
}

func atMost(name string, length int) []string {
	if len(name) > length {
		return []string{validation.MaxLenError(length)}
	}
	return nil
}

func priorityClassName(name string, object map[string]any) []string {
	known := []string{"system-cluster-critical", "system-node-critical"}
	if strings.HasPrefix(name, "system-") && !slices.Contains(known, name) {
		return []string{"the prefix system- is reserved for classes of Kubernetes"}
	}
	return subdomain(name, object)
}

func ipAddressName(name string, _ map[string]any) []string {
	if len(validation.IsValidIP(nil, name)) > 0 {
		return []string{"must be an IP address in its canonical form"}
	}
	return nil
}

func definitionName(name string, object map[string]any) []string {
	plural, _, _ := unstructured.NestedString(object, "spec", "names", "plural")
	group, _, _ := unstructured.NestedString(object, "spec", "group")
	return mustBe(name, plural+"."+group, "spec.names.plural and spec.group")
}

func apiServiceName(name string, object map[string]any) []string {
	version, _, _ := unstructured.NestedString(object, "spec", "version")
	group, _, _ := unstructured.NestedString(object, "spec", "group")
	return mustBe(name, version+"."+group, "spec.version and spec.group")
}

func mustBe(name, want, from string) []string {
	if name != want {
		return []string{fmt.Sprintf("must be %s, which follows from %s", want, from)}
	}
	return nil
}

// checkNames warns of names, labels and annotations that every API server refuses. An object
// without a name is reported elsewhere.
func (c *comparison) checkNames(kind api.GroupKind, object map[string]any, p *document.FieldPath) {
	rule, special := nameRules[kind]
	if !special {
		rule = subdomain
	}
	metadata, _ := object["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	if variable.In(name) {
		c.r.Warnf(p.Child("metadata", "name"), "cannot have a variable, since placements select objects by their names; write the name itself")
	} else if rule != nil && name != "" {
		c.invalid(p.Child("metadata", "name"), "name of "+api.WithArticle(kind.Kind), name, rule(name, object))
	}
	if namespace, _ := metadata["namespace"].(string); namespace != "" {
		c.invalid(p.Child("metadata", "namespace"), "name of a Namespace", namespace, dnsLabel(namespace, nil))
	}
}

// invalid reports that a value cannot be what it is, with the first reason.
func (c *comparison) invalid(p *document.FieldPath, what, value string, reasons []string) {
	if len(reasons) == 0 || variable.In(value) {
		return
	}
	reason, _, _ := strings.Cut(reasons[0], " (e.g. ") // without the regular expression
	if c.secret {
		c.report(p, "is not a valid "+what+": "+reason)
		return
	}
	if strings.Contains(value, "${") {
		reason = "variables of this form are replaced only in an Overlay or ClusterOverlay with postBuild"
	}
	c.report(p, fmt.Sprintf("%q is not a valid %s: %s", value, what, reason))
}
