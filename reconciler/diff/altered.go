package diff

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gitfleet/gitfleet/placement/api"
)

// Altered lists the values of a manifest that an API server stores otherwise
// than they were applied: an admission webhook or policy mutates them, or the
// server itself does. stored is the server's answer to an apply of the manifest,
// or to a dry run of one. Fields that the manifest does not set, fields that it
// asks to leave alone and those of ignore do not count, and neither does another
// way to write the same value. Values of Secrets are masked.
func Altered(manifest, stored *unstructured.Unstructured, ignore []string) []api.PatchDetail {
	manifest = Normalize(manifest)
	if covers(manifest.Object, stored.Object) {
		return nil
	}
	return slices.DeleteFunc(Compare(manifest, stored, Options{Structural: true, Ignore: ignore}), func(d api.PatchDetail) bool {
		return d.ValueInMember == "" && empty[d.ValueInHub]
	})
}

// empty is how values are printed that many kinds drop when they are written.
var empty = map[string]bool{"": true, "false": true, "0": true, "[]": true, "map[]": true}

// covers reports whether have holds all values of want: maps may have more
// fields, lists have the same items. Where it says no they may be the same all
// the same; it spares most objects the full comparison.
func covers(want, have any) bool {
	switch want := want.(type) {
	case map[string]any:
		fields, ok := have.(map[string]any)
		if !ok {
			return false
		}
		for key, value := range want {
			if there, set := fields[key]; value != nil && (!set || !covers(value, there)) {
				return false
			}
		}
		return true
	case []any:
		items, ok := have.([]any)
		return ok && slices.EqualFunc(want, items, covers)
	default:
		return scalar(have) && plain(want) == plain(have)
	}
}

// Repairable returns the differences between the answer to a dry run and the
// live object that an apply would repair. altered lists how the dry run differs
// from the manifest, known how the answers to earlier applies did. A field that
// is in both gets another value at each apply, for instance from a webhook that
// writes a timestamp, and is left out.
func Repairable(found, altered, known []api.PatchDetail) []api.PatchDetail {
	return slices.DeleteFunc(slices.Clone(found), func(d api.PatchDetail) bool {
		return hasPath(altered, d.Path) && hasPath(known, d.Path)
	})
}

func hasPath(list []api.PatchDetail, path string) bool {
	return slices.ContainsFunc(list, func(d api.PatchDetail) bool { return d.Path == path })
}
