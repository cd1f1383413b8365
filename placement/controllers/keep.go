package controllers

import (
	"maps"
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
		keep:  rolloutHash,
	},
}

// What Argo Rollouts writes into a Service: the key of the selector, and the annotation with the name of its Rollout.
const (
	podHash          = "rollouts-pod-template-hash"
	managedByRollout = "argo-rollouts.argoproj.io/managed-by-rollouts"
)

// MayKeep reports whether an object sets a field that controllers may extend.
func MayKeep(o *unstructured.Unstructured) bool {
	kind := o.GroupVersionKind().GroupKind()
	return slices.ContainsFunc(Keeps, func(k Kept) bool {
		_, sets, _ := unstructured.NestedFieldNoCopy(o.Object, k.Path...)
		return k.GroupKind == kind && sets
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

// pullSecrets returns the pull secrets with those of OpenShift's controller, or nil if it has added none.
func pullSecrets(live *unstructured.Unstructured, want, have any) any {
	name := func(item any) string {
		fields, _ := item.(map[string]any)
		text, _ := fields["name"].(string)
		return text
	}
	list, _ := want.([]any)
	all, added := slices.Clone(list), false
	items, _ := have.([]any)
	for _, item := range items {
		ours := slices.ContainsFunc(list, func(w any) bool { return name(w) == name(item) })
		if strings.HasPrefix(name(item), live.GetName()+"-dockercfg-") && !ours {
			all, added = append(all, map[string]any{"name": name(item)}), true
		}
	}
	if !added {
		return nil
	}
	return all
}
