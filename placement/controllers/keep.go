package controllers

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gitfleet/gitfleet/placement/api"
)

// A Kept is a field that a manifest sets and that a controller of the cluster may extend: what it has
// added stays beside the value in Git.
type Kept struct {
	api.GroupKind
	Path []string
	// Sign says in words what stays.
	Sign, Owner string
	// marks says that the controller also owns an annotation of what it extends.
	marks bool
	// keep returns the value to apply instead of want beside the live one; nil if that is want.
	keep func(live *unstructured.Unstructured, want, have any) any
}

// Keeps are the fields that controllers may extend.
var Keeps = []Kept{
	{
		GroupKind: api.GroupKind{Kind: "PersistentVolumeClaim"}, Path: []string{"spec", "resources", "requests", "storage"},
		Sign: "a size that is larger than in Git, since a claim cannot shrink", Owner: "whoever enlarges the claim, such as an autoscaler of volumes",
		keep: larger,
	},
	{
		GroupKind: api.GroupKind{Kind: "ServiceAccount"}, Path: []string{"imagePullSecrets"},
		Sign: "items named `NAME-dockercfg-…` after the ServiceAccount", Owner: "the controller of pull secrets of OpenShift",
		keep: pullSecrets,
	},
	{
		GroupKind: api.GroupKind{Kind: "Service"}, Path: []string{"spec", "selector"},
		Sign:  "the key `" + podHash + "`, with the annotation `" + managedByRollout + "`",
		Owner: "Argo Rollouts, which chooses by it the pods of a stable or canary version",
		marks: true, keep: rolloutHash,
	},
	{
		GroupKind: webhooks[0], Path: []string{"webhooks"}, Sign: exemptions, Owner: aksEnforcer, keep: exemptedByAKS,
	},
	{
		GroupKind: webhooks[1], Path: []string{"webhooks"}, Sign: exemptions, Owner: aksEnforcer, keep: exemptedByAKS,
	},
}

// What Argo Rollouts writes into a Service: the key of the selector, and the annotation with the name of its Rollout.
const (
	podHash          = "rollouts-pod-template-hash"
	managedByRollout = "argo-rollouts.argoproj.io/managed-by-rollouts"
)

const (
	exemptions  = "in a `namespaceSelector`, the expressions `control-plane NotIn (true)` and `kubernetes.azure.com/managedby NotIn (aks)`"
	aksEnforcer = "the admissions enforcer of AKS, which exempts the namespaces of AKS from every webhook"
)

// exempted are the expressions that the admissions enforcer of AKS adds to the namespaceSelector of a webhook.
var exempted = []any{
	map[string]any{"key": "control-plane", "operator": "NotIn", "values": []any{"true"}},
	map[string]any{"key": "kubernetes.azure.com/managedby", "operator": "NotIn", "values": []any{"aks"}},
}

// MayKeep reports whether an object sets a field that controllers may extend. others says whether anybody else owns fields of
// the live object: of most Services nobody does.
func MayKeep(o *unstructured.Unstructured, others bool) bool {
	kind := o.GroupVersionKind().GroupKind()
	return slices.ContainsFunc(Keeps, func(k Kept) bool {
		_, sets, _ := unstructured.NestedFieldNoCopy(o.Object, k.Path...)
		return k.GroupKind == kind && sets && (others || !k.marks)
	})
}

// Keep returns the object to apply beside a live one: with what controllers have added to fields of it.
// It is the object itself if nothing was added.
func Keep(o, live *unstructured.Unstructured) *unstructured.Unstructured {
	out, kind := o, o.GroupVersionKind().GroupKind()
	for _, k := range Keeps {
		if live == nil || k.GroupKind != kind {
			continue
		}
		want, sets, _ := unstructured.NestedFieldNoCopy(o.Object, k.Path...)
		have, there, _ := unstructured.NestedFieldNoCopy(live.Object, k.Path...)
		if !sets || !there {
			continue
		}
		value := k.keep(live, want, have)
		if value == nil {
			continue
		}
		if out == o {
			out = o.DeepCopy()
		}
		if unstructured.SetNestedField(out.Object, value, k.Path...) != nil {
			return o
		}
	}
	return out
}

// larger returns the live size of a claim if it is larger, or else nil.
func larger(_ *unstructured.Unstructured, want, have any) any {
	text, ok := want.(string)
	liveText, isText := have.(string)
	if !ok || !isText {
		return nil
	}
	size, err := api.ParseQuantity(text)
	liveSize, liveErr := api.ParseQuantity(liveText)
	if err != nil || liveErr != nil || liveSize.Cmp(size) <= 0 {
		return nil
	}
	return liveText
}

// rolloutHash returns the selector of a Service with the hash by which a Rollout chooses pods, or nil if it has none or Git
// sets one. A selector is replaced as a whole by an apply, so that the Service would have the pods of all versions.
func rolloutHash(live *unstructured.Unstructured, want, have any) any {
	inGit, _ := want.(map[string]any)
	onMember, _ := have.(map[string]any)
	hash, there := onMember[podHash]
	if _, set := inGit[podHash]; set || !there || texts(live.Object, "annotations")[managedByRollout] == "" {
		return nil
	}
	all := maps.Clone(inGit)
	all[podHash] = hash
	return all
}

// exemptedByAKS returns webhooks with the expressions that the admissions enforcer of AKS has added, or nil if it has added none.
// An apply replaces a selector as a whole, and the enforcer would add them again.
func exemptedByAKS(_ *unstructured.Unstructured, want, have any) any {
	inGit, _ := want.([]any)
	onMember, _ := have.([]any)
	all, added := slices.Clone(inGit), false
	for i, item := range inGit {
		webhook, _ := item.(map[string]any)
		at := slices.IndexFunc(onMember, func(other any) bool { return nameOf(other) == nameOf(item) })
		selector, set := webhook["namespaceSelector"].(map[string]any)
		if !set || at < 0 {
			continue
		}
		expressions := withExemptions(expressionsOf(item), expressionsOf(onMember[at]))
		if expressions == nil {
			continue
		}
		webhook, selector, added = maps.Clone(webhook), maps.Clone(selector), true
		selector["matchExpressions"], webhook["namespaceSelector"] = expressions, selector
		all[i] = webhook
	}
	if !added {
		return nil
	}
	return all
}

// expressionsOf returns the expressions of the namespaceSelector of a webhook.
func expressionsOf(webhook any) []any {
	fields, _ := webhook.(map[string]any)
	field, _, _ := unstructured.NestedFieldNoCopy(fields, "namespaceSelector", "matchExpressions")
	list, _ := field.([]any)
	return list
}

// withExemptions returns the expressions in Git with those that the enforcer has added to the live ones, in the order of
// these if nothing else differs; nil if it has added none.
func withExemptions(inGit, live []any) []any {
	var added, others []any
	for _, e := range live {
		same := func(other any) bool { return reflect.DeepEqual(other, e) }
		if slices.ContainsFunc(exempted, same) && !slices.ContainsFunc(inGit, same) {
			added = append(added, e)
		} else {
			others = append(others, e)
		}
	}
	switch {
	case added == nil:
		return nil
	case len(others) == len(inGit) && (len(inGit) == 0 || reflect.DeepEqual(others, inGit)):
		return live
	}
	return slices.Concat(inGit, added)
}

// pullSecrets returns the pull secrets with those of OpenShift's controller, or nil if it has added none.
func pullSecrets(live *unstructured.Unstructured, want, have any) any {
	list, _ := want.([]any)
	all, added := slices.Clone(list), false
	items, _ := have.([]any)
	for _, item := range items {
		ours := slices.ContainsFunc(list, func(w any) bool { return nameOf(w) == nameOf(item) })
		if strings.HasPrefix(nameOf(item), live.GetName()+"-dockercfg-") && !ours {
			all, added = append(all, map[string]any{"name": nameOf(item)}), true
		}
	}
	if !added {
		return nil
	}
	return all
}

// nameOf returns the name of an item of a list; empty if it has none.
func nameOf(item any) string {
	fields, _ := item.(map[string]any)
	text, _ := fields["name"].(string)
	return text
}
