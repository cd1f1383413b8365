package diff

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Mask stands where a secret value would.
const Mask = "(redacted for security reasons)"

// Redact returns a copy of an object that may be shown: data and stringData
// of Secrets are masked, also of a Secret that is part of something else, and
// so are the annotations in which tools keep a copy of what was last applied,
// and any other annotation of a Secret that repeats one of its values.
func Redact(o *unstructured.Unstructured) *unstructured.Unstructured {
	if o == nil {
		return nil
	}
	return &unstructured.Unstructured{Object: redacted(o.Object, SecretsOf(o)).(map[string]any)}
}

// redacted copies a value and masks what must not be shown of it. The copy has
// the same shape.
func redacted(v any, secrets Secrets) any {
	switch v := v.(type) {
	case map[string]any:
		secret := isSecret(v)
		m := make(map[string]any, len(v))
		for key, field := range v {
			switch {
			case secret && secretFields[key]:
				m[key] = masked(field)
			case keepsCopy(key):
				m[key] = masked(field)
			case key == "annotations":
				m[key] = scrubbed(redacted(field, secrets), secrets)
			default:
				m[key] = redacted(field, secrets)
			}
		}
		return m
	case []any:
		l := make([]any, len(v))
		for i, item := range v {
			l[i] = redacted(item, secrets)
		}
		return l
	default:
		return v
	}
}

// masked replaces every value that is not empty.
func masked(v any) any {
	switch v := v.(type) {
	case map[string]any:
		m := make(map[string]any, len(v))
		for key, field := range v {
			m[key] = masked(field)
		}
		return m
	case []any:
		l := make([]any, len(v))
		for i, item := range v {
			l[i] = masked(item)
		}
		return l
	case nil:
		return nil
	default:
		if v == "" {
			return v
		}
		return Mask
	}
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

var secretFields = map[string]bool{"data": true, "stringData": true}

func isSecret(o map[string]any) bool { return o["kind"] == "Secret" && o["apiVersion"] == "v1" }

// keepsCopy reports whether a tool keeps the whole of an applied object under
// this annotation.
func keepsCopy(key string) bool {
	return strings.Contains(key, "last-applied") || copies[key]
}

var copies = map[string]bool{
	"kapp.k14s.io/original":                       true,
	"kapp.k14s.io/original-diff":                  true,
	"kapp.k14s.io/original-diff-full":             true,
	"objectset.rio.cattle.io/applied":             true,
	"kopf.zalando.org/last-handled-configuration": true,
}
