package diff

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/gitfleet/gitfleet/placement/controllers"
)

// MayBeFilled reports whether a manifest has a placeholder that a program may fill: it is a Secret with an
// empty value.
func MayBeFilled(manifest *unstructured.Unstructured) bool {
	return len(placeholders(manifest)) > 0
}

// Filled returns JSON pointers to the placeholders of a manifest that a program has filled in the live
// object: an empty value of a Secret whose live value belongs to one of controllers.Adders, such as the
// certificate that cert-manager issues. They are left to it. A value from anybody else is drift.
func Filled(manifest, live *unstructured.Unstructured) []string {
	empty := placeholders(manifest)
	if live == nil || len(empty) == 0 {
		return nil
	}
	var pointers []string
	entries := live.GetManagedFields()
	for i := range entries {
		if !controllers.AddsByContract(entries[i].Manager) {
			continue
		}
		theirs := fieldsOf(&entries[i])
		for _, key := range empty {
			if theirs.Has(fieldpath.MakePathOrDie("data", key)) {
				pointers = append(pointers, controllers.Pointer([]string{"data", key}))
			}
		}
	}
	slices.Sort(pointers)
	return slices.Compact(pointers)
}

// placeholders returns the keys of a Secret that have no value.
func placeholders(o *unstructured.Unstructured) (keys []string) {
	if !isSecret(o.Object) {
		return nil
	}
	data, _ := Normalize(o).Object["data"].(map[string]any)
	for key, value := range data {
		if value == nil || value == "" {
			keys = append(keys, key)
		}
	}
	return keys
}
