package validation

import (
	"testing"
)

// The first segments of a path decide whether an override may change it. They are compared
// exactly as written.
func TestWhatAnOverrideMayChange(t *testing.T) {
	const (
		empty  = "path cannot be empty"
		start  = "path must start with /"
		typ    = "cannot override typeMeta fields"
		meta   = "cannot override field metadata"
		fields = "cannot override metadata fields except annotations and labels"
		status = "cannot override status fields"
		blank  = "path cannot contain empty string"
	)
	for path, want := range map[string]string{
		"": empty, "spec": start, " /spec": start, "metadata/labels": start,
		"/kind": typ, "/apiVersion": typ, "/kind/x": typ,
		"/metadata": meta, "/metadata/name": fields, "/metadata/finalizers/0": fields, "/metadata/Labels": fields, "/metadata/": fields,
		"/status": status, "/status/phase": status,
		"/": blank, "//": blank, "/spec//x": blank, "/spec/": blank, "/spec/ /x": blank, "/metadata/labels/": blank,
		"/Kind": "", "/apiVersionabc": "", "/metadatas": "", "/Status": "", "/spec/status": "", "/spec/kind": "",
		"/metadata/labels": "", "/metadata/annotations": "", "/metadata/labels/apiVersion": "", "/metadata/annotations/a~1b": "",
		"/spec/a b": "", "/data/-": "",
	} {
		if got := patchPathFault(path); got != want {
			t.Errorf("%q: %q, want %q", path, got, want)
		}
	}
}
