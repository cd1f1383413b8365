// Package diff compares desired objects with live ones, and decides what to do about the
// differences.
//
// Compare is the only comparison: an object differs if and only if its result is not empty.
// Decide looks up the operation for the known facts about one object in a table. Other
// functions provide the facts: field ownership (ApplyHash, Who, Contested), and writers that
// undo each other's changes (Flips). Redact and Secrets keep values of Secrets out of all that
// is shown: objects, differences, and messages that quote them. All functions are pure and
// change no argument.
package diff

import (
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/controllers"
)

// Limit is the maximum number of entries in the result of a comparison. If there are more
// differences, the last entry says how many.
const Limit = 100

// Options configure a comparison.
type Options struct {
	// Structural compares without a dry run: hub is a manifest, and only fields that it sets
	// can differ. In doubt it misses a difference rather than report a false one; see overlay for
	// lists and defaults.
	Structural bool
	// Ignore are JSON pointers to fields that are not compared, including everything below
	// them. The object's own annotation may name more.
	Ignore []string
}

// Compare returns the differences between hub and member: the operations that turn hub into
// member, in the order of their paths. The objects differ if and only if the list is not empty.
// Fields that only a server, Kubernetes, KubeFleet or gitfleet writes are not compared, and
// neither are fields that belong to controllers, placeholders that they have filled, or fields
// that hub does not set and somebody owns through a subresource. Values of Secrets are masked.
//
// For a partial comparison hub is the result of a dry run of the manifest, or the manifest
// itself with Structural; for a full one it is the manifest. Nil is an object that does not
// exist. The values of both objects have the types that decoding JSON into an
// unstructured.Unstructured yields.
func Compare(hub, member *unstructured.Unstructured, opt Options) []api.PatchDetail {
	switch {
	case hub == nil && member == nil:
		return nil
	case member == nil:
		return []api.PatchDetail{{Path: "/", ValueInHub: "(the whole object)"}}
	case hub == nil:
		return []api.PatchDetail{{Path: "/", ValueInMember: "(the whole object)"}}
	}
	var list []api.PatchDetail
	found := compare(hub, member, opt)
	for i, c := range found {
		if rest := len(found) - i - 1; i == Limit-1 && rest > 0 {
			return append(list, api.PatchDetail{
				Path: c.path + " and " + strconv.Itoa(rest) + " more", ValueInHub: "(omitted)", ValueInMember: "(omitted)",
			})
		}
		list = append(list, c.detail())
	}
	return list
}

// compare returns all changes that turn hub into member; none if one of them does not exist.
func compare(hub, member *unstructured.Unstructured, opt Options) []change {
	if hub == nil || member == nil {
		return nil
	}
	left := append(controllers.Pointers(hub), Filled(hub, member)...) // before Normalize, since a value may show that it is to be left
	hub, secrets := Normalize(hub), SecretsOf(hub, member)
	h, m := comparable(hub), comparable(member)
	entries := member.GetManagedFields()
	owners := ownership(entries, api.FieldManager)
	ignored, _ := IgnoredFields(hub) // a malformed pointer matches nothing
	keep(h, m, owners, slices.Concat(left, ignored, opt.Ignore))
	if opt.Structural {
		h = overlay(h, m, owners, builtIn(hub))
	}
	removeOwned(h, m, throughSubresources(entries))
	return changes("", side{h, redacted(h, secrets)}, side{m, redacted(m, secrets)})
}

// Ignored lists the differences in fields that the object's annotation asks to ignore. It needs
// no dry run; see Options.
func Ignored(hub, member *unstructured.Unstructured) []api.PatchDetail {
	pointers, _ := IgnoredFields(hub)
	if member == nil || len(pointers) == 0 {
		return nil
	}
	hub = Normalize(hub)
	all := hub.DeepCopy()
	notes := all.GetAnnotations()
	delete(notes, api.IgnoreFieldsAnnotation)
	all.SetAnnotations(notes)
	return Compare(all, Keep(hub, member, pointers), Options{Structural: true})
}
