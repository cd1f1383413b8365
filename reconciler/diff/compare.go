package diff

import (
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gitfleet/gitfleet/placement/api"
)

// Limit is how many entries a comparison lists at most. Where there are more
// differences, the last entry says how many it stands for.
const Limit = 100

// Options say how to compare.
type Options struct {
	// Structural compares without a dry run: hub is a manifest, not what a
	// server made of it, and only what it names can differ. It is careful
	// rather than complete; see overlay for what it knows of lists and
	// defaults.
	Structural bool
	// Ignore are JSON pointers to what never differs, with all below them,
	// besides those of the object's own annotation.
	Ignore []string
}

// Compare lists what differs between hub and member: the operations that turn
// hub into member, in the order of their paths. Two objects differ if and only
// if the list is not empty. What only a server, Kubernetes itself, KubeFleet
// or gitfleet writes is left out, and so are fields that hub does not set and
// someone owns through a subresource. Values of Secrets are masked.
//
// For a partial comparison hub is the result of a dry run of the manifest, or
// the manifest itself with Structural; for a full one it is the manifest. Nil
// stands for an object that does not exist.
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

// sides returns copies of the two objects, reduced to what is compared.
func sides(hub, member *unstructured.Unstructured, opt Options) (h, m map[string]any) {
	h, m = cleaned(hub), cleaned(member)
	entries := member.GetManagedFields()
	if opt.Structural {
		h = overlay(h, m, ownership(entries, api.FieldManager), builtIn(hub))
	}
	disregard(h, m, throughSubresources(entries))
	own, _ := IgnoredFields(hub) // a malformed pointer points at nothing
	for _, pointer := range append(own, opt.Ignore...) {
		forget(h, m, api.SplitPointer(pointer))
	}
	return h, m
}

// details prints changes, and no more than Limit of them.
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
