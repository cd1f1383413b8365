package diff

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/gitfleet/gitfleet/placement/api"
)

// Redact returns a copy of an object that may be shown. It masks data and stringData of
// Secrets, also of Secrets within other objects and envelopes, the annotations in which tools
// keep a copy of the applied object, and annotations of a Secret that repeat one of its values.
func Redact(o *unstructured.Unstructured) *unstructured.Unstructured {
	if o == nil {
		return nil
	}
	return &unstructured.Unstructured{Object: redacted(o.Object, SecretsOf(o)).(map[string]any)}
}

// changedMask follows a masked value that is another one than before.
const changedMask = ", changed"

// RedactChange returns copies of two versions of an object that may be shown, as Redact does. A masked value that the
// second version changes says so there.
func RedactChange(before, after *unstructured.Unstructured) (was, is *unstructured.Unstructured) {
	secrets := SecretsOf(before, after)
	b, a := redacted(before.Object, secrets), redacted(after.Object, secrets)
	a = markChanged(before.Object, after.Object, b, a)
	return &unstructured.Unstructured{Object: b.(map[string]any)}, &unstructured.Unstructured{Object: a.(map[string]any)}
}

// markChanged marks the values that differ although the masked ones are equal.
func markChanged(before, after, shownBefore, shownAfter any) any {
	switch shown := shownAfter.(type) {
	case map[string]any:
		b, _ := before.(map[string]any)
		a, _ := after.(map[string]any)
		s, _ := shownBefore.(map[string]any)
		for key := range shown {
			if _, there := b[key]; there {
				shown[key] = markChanged(b[key], a[key], s[key], shown[key])
			}
		}
	case []any:
		b, _ := before.([]any)
		a, _ := after.([]any)
		s, _ := shownBefore.([]any)
		for i := range min(len(shown), len(b)) {
			shown[i] = markChanged(b[i], a[i], s[i], shown[i])
		}
	case string:
		if shown == shownBefore && before != after {
			return shown + changedMask
		}
	}
	return shownAfter
}

// redacted returns a masked copy of an object, with the same shape.
func redacted(object any, secrets Secrets) any {
	shown := redactedValue(object, secrets)
	for _, field := range secrets.fields {
		shown = maskField(shown, field)
	}
	return shown
}

// maskField masks the values at a path of a copy. An index stands for all items of its list.
func maskField(v any, path []string) any {
	if len(path) == 0 {
		return masked(v)
	}
	switch v := v.(type) {
	case map[string]any:
		if field, there := v[path[0]]; there {
			v[path[0]] = maskField(field, path[1:])
		}
	case []any:
		for i, item := range v {
			v[i] = maskField(item, path[1:])
		}
	}
	return v
}

// redactedValue returns a masked copy of a value without regard to the fields that are secret in this object only.
func redactedValue(v any, secrets Secrets) any {
	switch v := v.(type) {
	case map[string]any:
		secret, envelope := isSecret(v), isEnvelope(v)
		m := make(map[string]any, len(v))
		for key, field := range v {
			switch {
			case secret && secretFields[key]:
				m[key] = masked(field)
			case envelope && key == "data":
				m[key] = wrapped(field)
			case keepsCopy(key):
				m[key] = masked(field)
			case key == "annotations":
				m[key] = scrubbed(redactedValue(field, secrets), secrets)
			default:
				m[key] = redactedValue(field, secrets)
			}
		}
		return m
	case []any:
		l := make([]any, len(v))
		for i, item := range v {
			l[i] = redactedValue(item, secrets)
		}
		return l
	default:
		return v
	}
}

// wrapped masks the manifests in the data of an envelope that contain a Secret or cannot be
// parsed.
func wrapped(data any) any {
	manifests, ok := data.(map[string]any)
	if !ok {
		return masked(data)
	}
	m := make(map[string]any, len(manifests))
	for key, text := range manifests {
		if m[key] = text; !isWithoutSecret(text) {
			m[key] = masked(text)
		}
	}
	return m
}

// isWithoutSecret reports whether a text is a manifest without a Secret.
func isWithoutSecret(text any) bool {
	s, ok := text.(string)
	var manifest any
	if !ok || yaml.Unmarshal([]byte(s), &manifest) != nil {
		return false
	}
	switch manifest.(type) {
	case map[string]any, []any:
		return !holdsSecret(manifest)
	}
	return false
}

func holdsSecret(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		return isSecret(v) || slices.ContainsFunc(slices.Collect(maps.Values(v)), holdsSecret)
	case []any:
		return slices.ContainsFunc(v, holdsSecret)
	}
	return false
}

// masked replaces every value that is not empty.
func masked(v any) any {
	return mapLeaves(v, func(leaf any) any {
		if leaf == nil || leaf == "" {
			return leaf
		}
		return Mask
	})
}

// scrubbed removes secret values from the values of a map.
func scrubbed(v any, secrets Secrets) any {
	pairs, ok := v.(map[string]any)
	if !ok {
		return v
	}
	for key, value := range pairs {
		if s, ok := value.(string); ok {
			pairs[key] = secrets.Scrub(s)
		}
	}
	return pairs
}

// isEnvelope reports whether an object is a ConfigMap with manifests.
func isEnvelope(o map[string]any) bool {
	meta, _ := o["metadata"].(map[string]any)
	notes, _ := meta["annotations"].(map[string]any)
	return o["kind"] == "ConfigMap" && o["apiVersion"] == "v1" && notes[api.EnvelopeConfigMapAnnotation] == "true"
}
