package diff

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

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

// OutdatedDefaults returns the fields of an object, after an apply, that the desired one does not set, that nobody owns, and whose
// value is the default of earlier content: an API server computes it from other fields where it is missing, and keeps it when those
// change. Another apply sets the default anew, once gitfleet has taken ownership of the field.
func OutdatedDefaults(r Request) Removal {
	if !r.mayHaveOutdated() {
		return Removal{}
	}
	s, p := r.search()
	s.outdated(p, r.Live.Object, r.Desired.Object)
	return s.Removal
}

// RemovedOrOutdated returns the fields of both RemovedFrom and OutdatedDefaults.
func RemovedOrOutdated(r Request) Removal {
	s, p := r.search()
	s.removed(p, r.Live.Object, r.Desired.Object)
	if r.mayHaveOutdated() {
		s.outdated(p, r.Live.Object, r.Desired.Object)
	}
	return s.Removal
}

// mayHaveOutdated reports whether an object can have fields with computed defaults. A ConfigMap, for example, cannot.
func (r Request) mayHaveOutdated() bool {
	_, hasSpec := r.Desired.Object["spec"]
	_, hasTemplate := r.Desired.Object["template"]
	return (hasSpec || hasTemplate) && api.BuiltInGroup(r.Live.GroupVersionKind().Group)
}

func (s *search) outdated(p position, live, desired any) {
	parts, _ := p.parts(live, desired)
	for _, f := range parts {
		switch {
		case f.wanted:
			s.outdated(p.at(f.e), f.live, f.desired)
		case f.e.FieldName == nil || holds(p.all, f.e) || s.ignores(p.below(f.e)):
		case p.isOutdated(f, parts):
			s.add(p, p.below(f.e), fieldpath.NewSet())
		}
	}
}

// isOutdated reports whether a field has a default that the others, which are desired or owned, would not give it. If
// the content before is known, the field must have been set there, or have the default of that; an admission webhook may have set another
// value. If it is not, as when an object is taken over, fields of pod templates stay, so that no pods are replaced.
func (p position) isOutdated(f part, parts []part) bool {
	path := p.dotted(f.e)
	i := slices.IndexFunc(computed, func(c computedDefault) bool { return strings.HasSuffix(path, c.path) })
	if i < 0 {
		return false
	}
	others := map[string]any{}
	for _, o := range parts {
		if o.wanted {
			others[*o.e.FieldName] = o.desired
		} else if holds(p.all, o.e) {
			others[*o.e.FieldName] = o.live
		}
	}
	value := Text(f.live)
	if value == Text(computed[i].of(others)) {
		return false
	}
	was, known := p.was.(map[string]any)
	if !known {
		return !strings.HasPrefix(computed[i].path, "template.")
	}
	return value == Text(was[*f.e.FieldName]) || value == Text(computed[i].of(was))
}

// A computedDefault is the default that API servers compute for a field from the fields beside it. path is the end of the path of the
// field, and of returns nil if there is no default.
type computedDefault struct {
	path string
	of   func(others map[string]any) any
}

// computed are the fields that API servers set when they are missing, and do not adjust later. Of pod templates only: a
// pod cannot be changed.
var computed = []computedDefault{
	{"spec.policyTypes", policyTypes},
	{"template.spec.containers.imagePullPolicy", pullPolicyOf("image")},
	{"template.spec.initContainers.imagePullPolicy", pullPolicyOf("image")},
	{"template.spec.volumes.image.pullPolicy", pullPolicyOf("reference")},
	{"template.spec.serviceAccountName", copyOf("serviceAccount")},
	{"template.spec.serviceAccount", copyOf("serviceAccountName")},
}

// policyTypes returns the types of a NetworkPolicy with some rules.
func policyTypes(spec map[string]any) any {
	if egress, _ := spec["egress"].([]any); len(egress) > 0 {
		return []any{"Ingress", "Egress"}
	}
	return []any{"Ingress"}
}

// pullPolicyOf returns the pull policy of the image that a field names.
func pullPolicyOf(field string) func(map[string]any) any {
	return func(fields map[string]any) any {
		image, _ := fields[field].(string)
		name, _, pinned := strings.Cut(image, "@")
		_, tag, tagged := strings.Cut(name[strings.LastIndexByte(name, '/')+1:], ":")
		if tag == "latest" || !tagged && !pinned {
			return "Always"
		}
		return "IfNotPresent"
	}
}

// copyOf returns the value of another field, of which a server keeps a copy.
func copyOf(field string) func(map[string]any) any {
	return func(fields map[string]any) any { return fields[field] }
}
