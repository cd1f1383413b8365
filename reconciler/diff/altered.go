package diff

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gitfleet/gitfleet/placement/api"
)

// Altered lists the values of a manifest that the API server stores differently, because an
// admission webhook, a policy or the server itself changes them. stored is the server's
// response to an apply or a dry run of the manifest. Not listed are fields that the manifest
// does not set, fields that the manifest or ignore says to ignore, and different spellings of
// the same value. Values of Secrets are masked.
func Altered(manifest, stored *unstructured.Unstructured, ignore []string) []api.PatchDetail {
	manifest = Normalize(manifest)
	if covers(manifest.Object, stored.Object, nil) {
		return nil
	}
	return slices.DeleteFunc(Compare(manifest, stored, Options{Structural: true, Ignore: ignore}), func(d api.PatchDetail) bool {
		return d.ValueInMember == "" && empty[d.ValueInHub]
	})
}

// IsStored reports whether the server has stored all values of a manifest, so that Altered lists nothing. Unlike
// Altered, it needs no managedFields. A false result may be wrong.
func IsStored(manifest, stored *unstructured.Unstructured) bool {
	return covers(Normalize(manifest).Object, stored.Object, nil)
}

// Repairable returns the differences between a dry run and the live object that an apply would
// repair. altered lists the differences between the dry run and the manifest, and known those
// of earlier applies. A field that both list gets a new value with each apply, such as a
// timestamp from a webhook, and is left out.
func Repairable(found, altered, known []api.PatchDetail) []api.PatchDetail {
	return slices.DeleteFunc(slices.Clone(found), func(d api.PatchDetail) bool {
		return hasPath(altered, d.Path) && hasPath(known, d.Path)
	})
}

func hasPath(list []api.PatchDetail, path string) bool {
	return slices.ContainsFunc(list, func(d api.PatchDetail) bool { return d.Path == path })
}
