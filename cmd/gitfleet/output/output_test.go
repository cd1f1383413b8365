package output

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// A document has the same content in every format, and a format that is not known is refused with
// those that are.
func TestFormat(t *testing.T) {
	pod := map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "web", "namespace": "shop"}}
	deployment := map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "<api>"}}
	for name, test := range map[string]struct {
		flag string
		doc  any
		want string
		err  string
	}{
		"the default":             {"", pod, "as text\n", ""},
		"text":                    {"wide", pod, "as text\n", ""},
		"json":                    {"json", map[string]any{"a": "<b>"}, "{\n  \"a\": \"<b>\"\n}\n", ""},
		"yaml":                    {"yaml", map[string]any{"a": []int{1}}, "a:\n- 1\n", ""},
		"a name":                  {"name", pod, "pod/shop/web\n", ""},
		"names":                   {"name", ListOf("v1", []any{pod, deployment}), "pod/shop/web\ndeployment.apps/<api>\n", ""},
		"a path":                  {"jsonpath={.metadata.name}", pod, "web", ""},
		"a path without braces":   {"jsonpath=.metadata.name", pod, "web", ""},
		"a path that leads to no": {"jsonpath={.spec.replicas}", pod, "", ""},
		"an empty path":           {"jsonpath=", nil, "", "-o jsonpath=: write a template"},
		"a wrong path":            {"jsonpath={.a", nil, "", "-o jsonpath={.a: "},
		"an unknown format":       {"xml", nil, "", "-o xml: use table, wide, name, json, yaml or jsonpath=TEMPLATE"},
	} {
		t.Run(name, func(t *testing.T) {
			var f Format
			flags := pflag.NewFlagSet("", pflag.ContinueOnError)
			f.Bind(flags, "table", "wide", "name")
			var err error
			if test.flag != "" {
				err = flags.Set("output", test.flag)
			}
			var out strings.Builder
			if err == nil {
				err = f.Print(&out, test.doc, func() string {
					if !f.IsText() {
						t.Error("the text was made for a document")
					}
					return "as text\n"
				})
			}
			if test.err == "" && err != nil || test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)) {
				t.Fatalf("%v, want %q", err, test.err)
			}
			if out.String() != test.want {
				t.Errorf("got %q, want %q", &out, test.want)
			}
		})
	}
}

// A list without items has an empty list in JSON, not null.
func TestAnEmptyList(t *testing.T) {
	var out strings.Builder
	if err := WriteJSON(&out, ListOf[string]("v1", nil)); err != nil || !strings.Contains(out.String(), `"items": []`) {
		t.Errorf("%s, %v", &out, err)
	}
}
