// Package controllers says what of an object belongs to a controller of the cluster, and not to
// the manifest: fields that a controller sets by contract, such as the rules of an aggregated
// ClusterRole, and deletions that are no drift, such as that of a finished Job by its TTL.
//
// Fields, Autoscalers and Runs are the tables. Everything that applies, compares, validates or
// documents objects reads them, so that a field is left alone in all places or in none.
package controllers

import (
	"encoding/base64"
	"encoding/pem"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gitfleet/gitfleet/placement/api"
)

// A Field is a field of some kinds that belongs to a controller if the object has a sign of it.
// It is not sent, not even when the object is created, and not compared. A live value that only
// gitfleet owns stays until the controller sets the field.
type Field struct {
	Kinds []api.GroupKind
	// Path are the keys of the field. "*" stands for every item of a list.
	Path []string
	// Sign says in words by what the field is recognised, and given reports whether an object has
	// that sign, or a value of the field is one.
	Sign  string
	given sign
	// Owner is what sets the field, and Fix what to do with a value in Git.
	Owner, Fix string
}

// IsPlaceholder reports whether a value of the field says nothing: it is empty, or a CA bundle
// without a certificate.
func (f *Field) IsPlaceholder(value any) bool {
	switch v := value.(type) {
	case []any:
		return len(v) == 0
	case string:
		return v == "" || f.Path[len(f.Path)-1] == "caBundle" && !hasCertificate(v)
	}
	return value == nil
}

// A sign reports whether a field of an object belongs to its controller. value is nil if the
// object does not set the field.
type sign func(object map[string]any, value any) bool

// Each calls visit for each field of an object that belongs to a controller and may be set: with
// the rule, the path, in which indexes replace "*", and the value; nil if it is not set.
func Each(o *unstructured.Unstructured, visit func(f *Field, path []string, value any)) {
	kind := o.GroupVersionKind().GroupKind()
	for i := range Fields {
		f := &Fields[i]
		if !slices.Contains(f.Kinds, kind) {
			continue
		}
		expand(o.Object, f.Path, nil, func(path []string, value any) {
			if f.given(o.Object, value) {
				visit(f, path, value)
			}
		})
	}
}

// expand calls visit for each position that a path describes. The fields above it must exist.
func expand(v any, path, above []string, visit func([]string, any)) {
	key, rest := path[0], path[1:]
	switch v := v.(type) {
	case map[string]any:
		at := append(slices.Clip(above), key)
		if len(rest) == 0 {
			visit(at, v[key])
		} else {
			expand(v[key], rest, at, visit)
		}
	case []any:
		if key != "*" || len(rest) == 0 {
			return
		}
		for i, item := range v {
			expand(item, rest, append(slices.Clip(above), strconv.Itoa(i)), visit)
		}
	}
}

// Strip returns an object without the fields that belong to controllers. The result shares what
// has not changed with the object, and is the object itself if it sets none of them.
func Strip(o *unstructured.Unstructured) *unstructured.Unstructured {
	var out map[string]any
	Each(o, func(_ *Field, path []string, value any) {
		if value == nil {
			return
		}
		if out == nil {
			out = maps.Clone(o.Object)
		}
		out = without(out, path).(map[string]any)
	})
	if out == nil {
		return o
	}
	return &unstructured.Unstructured{Object: out}
}

// without returns a copy of a value in which the field at a path is missing.
func without(v any, path []string) any {
	switch v := v.(type) {
	case map[string]any:
		out := maps.Clone(v)
		if len(path) == 1 {
			delete(out, path[0])
		} else {
			out[path[0]] = without(v[path[0]], path[1:])
		}
		return out
	case []any:
		out := slices.Clone(v)
		if i, err := strconv.Atoi(path[0]); err == nil {
			out[i] = without(v[i], path[1:])
		}
		return out
	default:
		return v
	}
}

// Fields are the fields that belong to controllers.
var Fields = []Field{
	{
		Kinds: []api.GroupKind{{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}},
		Path:  []string{"rules"}, Sign: "`aggregationRule`", given: sets("aggregationRule"),
		Owner: "the controller that aggregates ClusterRoles", Fix: "remove it, or write it into a ClusterRole that the aggregationRule selects",
	},
	{
		Kinds: webhooks, Path: []string{"webhooks", "*", "clientConfig", "caBundle"}, Sign: injected, given: isInjected,
		Owner: injector, Fix: removeBundle,
	},
	{
		Kinds: []api.GroupKind{{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}},
		Path:  []string{"spec", "conversion", "webhook", "clientConfig", "caBundle"}, Sign: injected, given: isInjected,
		Owner: injector, Fix: removeBundle,
	},
	{
		Kinds: []api.GroupKind{{Group: "apiregistration.k8s.io", Kind: "APIService"}},
		Path:  []string{"spec", "caBundle"}, Sign: injected, given: isInjected,
		Owner: injector, Fix: removeBundle,
	},
	{
		Kinds: configMap, Path: []string{"data", "service-ca.crt"},
		Sign: "annotation `service.beta.openshift.io/inject-cabundle: \"true\"`", given: annotated("true", openShiftBundles...),
		Owner: "the service CA operator of OpenShift", Fix: "remove it",
	},
	{
		Kinds: configMap, Path: []string{"data", "ca-bundle.crt"},
		Sign: "label `config.openshift.io/inject-trusted-cabundle: \"true\"`", given: labelled("true", "config.openshift.io/inject-trusted-cabundle"),
		Owner: "the network operator of OpenShift", Fix: "remove it",
	},
	{Kinds: secret, Path: []string{"data", "token"}, Sign: tokenType, given: isToken, Owner: tokenController, Fix: "remove it"},
	{Kinds: secret, Path: []string{"data", "ca.crt"}, Sign: tokenType, given: isToken, Owner: tokenController, Fix: "remove it"},
	{Kinds: secret, Path: []string{"data", "namespace"}, Sign: tokenType, given: isToken, Owner: tokenController, Fix: "remove it"},
	{
		Kinds: secret, Path: []string{"metadata", "annotations", "kubernetes.io/service-account.uid"}, Sign: tokenType, given: isToken,
		Owner: tokenController, Fix: "remove it: it differs on each cluster",
	},
	{
		Kinds: []api.GroupKind{{Kind: "PersistentVolume"}}, Path: []string{"spec", "claimRef", "uid"}, Sign: dumped, given: isSet,
		Owner: volumeController, Fix: "remove it: it differs on each cluster",
	},
	{
		Kinds: []api.GroupKind{{Kind: "PersistentVolume"}}, Path: []string{"spec", "claimRef", "resourceVersion"}, Sign: dumped, given: isSet,
		Owner: volumeController, Fix: "remove it: it differs on each cluster",
	},
	{Kinds: volumes, Path: []string{"metadata", "annotations", "pv.kubernetes.io/bind-completed"}, Sign: dumped, given: isSet, Owner: volumeController, Fix: "remove it"},
	{Kinds: volumes, Path: []string{"metadata", "annotations", "pv.kubernetes.io/bound-by-controller"}, Sign: dumped, given: isSet, Owner: volumeController, Fix: "remove it"},
	{Kinds: volumes, Path: []string{"metadata", "annotations", "volume.kubernetes.io/selected-node"}, Sign: dumped, given: isSet, Owner: "the scheduler", Fix: "remove it"},
	{Kinds: claims, Path: []string{"metadata", "annotations", "volume.kubernetes.io/storage-provisioner"}, Sign: dumped, given: isSet, Owner: volumeController, Fix: "remove it"},
	{Kinds: claims, Path: []string{"metadata", "annotations", "volume.beta.kubernetes.io/storage-provisioner"}, Sign: dumped, given: isSet, Owner: volumeController, Fix: "remove it"},
	{
		Kinds: []api.GroupKind{{Group: "apps", Kind: "Deployment"}}, Path: []string{"metadata", "annotations", "deployment.kubernetes.io/revision"},
		Sign: dumped, given: isSet, Owner: "the deployment controller", Fix: "remove it",
	},
	{
		Kinds: []api.GroupKind{{Group: "apps", Kind: "DaemonSet"}}, Path: []string{"metadata", "annotations", "deprecated.daemonset.template.generation"},
		Sign: dumped, given: isSet, Owner: "the API server", Fix: "remove it",
	},
	{Kinds: []api.GroupKind{{Kind: "Namespace"}}, Path: []string{"spec", "finalizers"}, Sign: dumped, given: isSet, Owner: "the namespace controller", Fix: "remove it"},
}

var (
	webhooks = []api.GroupKind{
		{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"},
		{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"},
	}
	configMap = []api.GroupKind{{Kind: "ConfigMap"}}
	secret    = []api.GroupKind{{Kind: "Secret"}}
	claims    = []api.GroupKind{{Kind: "PersistentVolumeClaim"}}
	volumes   = []api.GroupKind{{Kind: "PersistentVolume"}, {Kind: "PersistentVolumeClaim"}}
)

const (
	injected = "annotation `cert-manager.io/inject-ca-from`, `cert-manager.io/inject-ca-from-secret`, `cert-manager.io/inject-apiserver-ca` or " +
		"`service.beta.openshift.io/inject-cabundle`, or a value in Git that has no certificate"
	injector     = "the injector of the CA bundle, such as cert-manager's cainjector"
	removeBundle = "remove it"

	tokenType        = "type `kubernetes.io/service-account-token`"
	tokenController  = "the token controller"
	volumeController = "the volume controller"
	dumped           = "a value in Git"
)

var (
	injectors        = []string{"cert-manager.io/inject-ca-from", "cert-manager.io/inject-ca-from-secret", "certmanager.k8s.io/inject-ca-from"}
	openShiftBundles = []string{"service.beta.openshift.io/inject-cabundle", "service.alpha.openshift.io/inject-cabundle"}
)

// isInjected reports whether a CA bundle is injected: an annotation requests it, or the manifest
// has a placeholder. A bundle without a certificate trusts nobody, so that nobody means it.
func isInjected(o map[string]any, value any) bool {
	text, isText := value.(string)
	notes := texts(o, "annotations")
	for _, name := range injectors {
		if notes[name] != "" {
			return true
		}
	}
	return notes["cert-manager.io/inject-apiserver-ca"] == "true" || annotated("true", openShiftBundles...)(o, value) || isText && !hasCertificate(text)
}

// hasCertificate reports whether a CA bundle in base64 has a block of PEM.
func hasCertificate(bundle string) bool {
	text, err := base64.StdEncoding.DecodeString(bundle)
	if err != nil {
		return false
	}
	block, _ := pem.Decode(text)
	return block != nil
}

// isToken reports whether a Secret is filled with the token of a ServiceAccount.
func isToken(o map[string]any, _ any) bool {
	return o["type"] == "kubernetes.io/service-account-token"
}

// isSet is the sign of fields that belong to their controller whenever a manifest has them, which
// happens if somebody dumps an object into Git.
func isSet(_ map[string]any, value any) bool { return value != nil }

// sets is the sign that an object has a field.
func sets(field string) sign {
	return func(o map[string]any, _ any) bool { return o[field] != nil }
}

func annotated(value string, names ...string) sign { return marked("annotations", value, names) }

func labelled(value string, names ...string) sign { return marked("labels", value, names) }

// marked is the sign that one of some annotations or labels has a value.
func marked(in, value string, names []string) sign {
	return func(o map[string]any, _ any) bool {
		have := texts(o, in)
		return slices.ContainsFunc(names, func(name string) bool { return have[name] == value })
	}
}

func texts(o map[string]any, in string) map[string]string {
	m, _, _ := unstructured.NestedStringMap(o, "metadata", in)
	return m
}

// Pointers returns JSON pointers to the fields of an object that belong to controllers and may be
// set.
func Pointers(o *unstructured.Unstructured) []string {
	var out []string
	Each(o, func(_ *Field, path []string, _ any) { out = append(out, Pointer(path)) })
	return out
}

// Pointer returns a path as a JSON pointer.
func Pointer(path []string) string {
	var b strings.Builder
	for _, key := range path {
		b.WriteString("/" + api.EscapeKey(key))
	}
	return b.String()
}
