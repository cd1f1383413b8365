package diff

import (
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gitfleet/gitfleet/placement/api"
)

// Limit is the maximum number of entries in the result of a comparison. If there are more
// differences, the last entry says how many.
const Limit = 100

// Options configure a comparison.
type Options struct {
	// Structural compares without a dry run: hub is a manifest, and only fields that it sets
	// can differ. It rather misses a difference than reports a false one; see overlay for lists
	// and defaults.
	Structural bool
	// Ignore are JSON pointers to fields that are not compared, including everything below
	// them. The object's own annotation may name more.
	Ignore []string
}

// Compare returns the differences between hub and member: the operations that turn hub into
// member, in the order of their paths. The objects differ if and only if the list is not empty.
// Fields that only a server, Kubernetes, KubeFleet or gitfleet writes are not compared, and
// neither are fields that hub does not set and somebody owns through a subresource. Values of
// Secrets are masked.
//
// For a partial comparison hub is the result of a dry run of the manifest, or the manifest
// itself with Structural; for a full one it is the manifest. Nil is an object that does not
// exist.
func Compare(hub, member *unstructured.Unstructured, opt Options) []api.PatchDetail {
	switch {
	case hub == nil && member == nil:
		return nil
	case member == nil:
		return []api.PatchDetail{{Path: "/", ValueInHub: wholeObject}}
	case hub == nil:
		return []api.PatchDetail{{Path: "/", ValueInMember: wholeObject}}
	}
	secrets := SecretsOf(hub, member)
	h, m := sides(Normalize(hub), member, opt)
	found := changes("", side{h, redacted(h, secrets)}, side{m, redacted(m, secrets)})
	return details(found)
}

const (
	wholeObject = "(the whole object)"
	omitted     = "(omitted)"
)

// sides returns copies of the two objects with the compared fields.
func sides(hub, member *unstructured.Unstructured, opt Options) (h, m map[string]any) {
	h, m = comparable(hub), comparable(member)
	entries := member.GetManagedFields()
	if opt.Structural {
		h = overlay(h, m, ownership(entries, api.FieldManager), builtIn(hub))
	}
	removeOwned(h, m, throughSubresources(entries))
	own, _ := IgnoredFields(hub) // a malformed pointer matches nothing
	for _, pointer := range append(own, opt.Ignore...) {
		removePath(h, m, api.SplitPointer(pointer))
	}
	return h, m
}

// details prints changes, up to Limit.
func details(found []change) []api.PatchDetail {
	var list []api.PatchDetail
	for i, c := range found {
		if rest := len(found) - i - 1; i == Limit-1 && rest > 0 {
			return append(list, api.PatchDetail{
				Path:       c.path + " and " + strconv.Itoa(rest) + " more",
				ValueInHub: omitted, ValueInMember: omitted,
			})
		}
		list = append(list, c.detail())
	}
	return list
}
