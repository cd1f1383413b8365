// Package output prints the output of commands: text that fits a terminal, tables, and
// documents as JSON, YAML or by a template.
package output

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/jsonpath"
	"sigs.k8s.io/yaml"
)

// JSONPathPrefix begins the name of an output format that is a template.
const JSONPathPrefix = "jsonpath="

// A Format is the output format of a command. Every command that prints more than a line binds
// one, so that -o means the same everywhere.
type Format struct {
	Name      string
	NoHeaders bool
	text      []string // the text formats, the default first
}

// Bind adds -o to the flags of a command, and --no-headers if it prints a table. text are the
// text formats, the default first, and name if objects are listed; json, yaml and jsonpath are
// always supported.
func (f *Format) Bind(flags *pflag.FlagSet, text ...string) {
	f.text, f.Name = text, text[0]
	flags.VarP(f, "output", "o", f.known())
	flags.SetAnnotation("output", ValuesAnnotation, append(f.outputs(), JSONPathPrefix))
	if text[0] == "table" {
		flags.BoolVar(&f.NoHeaders, "no-headers", false, "print no header")
	}
}

func (f *Format) known() string {
	return strings.Join(f.outputs(), ", ") + " or jsonpath=TEMPLATE"
}

func (f *Format) outputs() []string {
	all := append(slices.Clone(f.text), "json")
	if !slices.Contains(all, "yaml") {
		all = append(all, "yaml")
	}
	return all
}

// Set implements pflag.Value. It refuses an unknown format.
func (f *Format) Set(name string) error {
	f.Name = name
	if template, ok := strings.CutPrefix(name, JSONPathPrefix); ok {
		_, err := parsePath(template)
		return err
	}
	if slices.Contains(f.outputs(), name) {
		return nil
	}
	return fmt.Errorf("-o %s: use %s", name, f.known())
}

// String implements pflag.Value.
func (f *Format) String() string { return f.Name }

// Type implements pflag.Value.
func (f *Format) Type() string { return "string" }

// IsText reports whether the format is a text format.
func (f *Format) IsText() bool { return f.Name != "name" && slices.Contains(f.text, f.Name) }

// IsWide reports whether a table shall have its less important columns.
func (f *Format) IsWide() bool { return f.Name == "wide" }

// Print writes a document or, if the format is a text format, the result of text, which says the
// same.
func (f *Format) Print(w io.Writer, doc any, text func() string) error {
	if !f.IsText() {
		return f.Write(w, doc)
	}
	_, err := io.WriteString(w, text())
	return err
}

// Write writes a document in a format that is not a text format.
func (f *Format) Write(w io.Writer, doc any) error { return writeDocument(Raw(w), doc, f.Name) }

// A List is a document of several things.
type List[T any] struct {
	APIVersion string `json:"apiVersion"`
	Items      []T    `json:"items"`
}

// ListOf returns a document of a version with items, which may be nil.
func ListOf[T any](version string, items []T) List[T] {
	return List[T]{version, append([]T{}, items...)}
}

// parsePath parses a template as kubectl does; braces around a single path may be omitted.
func parsePath(template string) (*jsonpath.JSONPath, error) {
	if template == "" {
		return nil, errors.New("-o jsonpath=: write a template, such as jsonpath='{.metadata.name}'")
	}
	if !strings.Contains(template, "{") {
		template = "{." + strings.TrimPrefix(template, ".") + "}"
	}
	p := jsonpath.New("output").AllowMissingKeys(true)
	if err := p.Parse(template); err != nil {
		return nil, fmt.Errorf("-o jsonpath=%s: %w", template, err)
	}
	return p, nil
}

// writeDocument writes an object or a list of objects.
func writeDocument(w io.Writer, doc any, output string) error {
	switch output {
	case "json":
		return WriteJSON(w, doc)
	case "yaml":
		raw, err := yaml.Marshal(doc)
		if err != nil {
			return err
		}
		_, err = w.Write(raw)
		return err
	}
	raw, err := json.Marshal(doc)
	if err != nil {
		return err
	}
	var plain map[string]any
	if err := json.Unmarshal(raw, &plain); err != nil {
		return err
	}
	if template, ok := strings.CutPrefix(output, JSONPathPrefix); ok {
		p, err := parsePath(template)
		if err != nil {
			return err
		}
		if err := p.Execute(w, plain); err != nil {
			return fmt.Errorf("-o %s: %w", output, err)
		}
		return nil
	}
	return writeNames(w, plain)
}

// writeNames writes kind.group/name for each object, as kubectl does, and with its namespace if
// it has one, so that every command accepts the name.
func writeNames(w io.Writer, doc map[string]any) error {
	items, isList := doc["items"].([]any)
	if !isList {
		items = []any{doc}
	}
	for _, i := range items {
		o := unstructured.Unstructured{Object: i.(map[string]any)}
		kind := o.GroupVersionKind().GroupKind()
		name := o.GetName()
		if o.GetNamespace() != "" {
			name = o.GetNamespace() + "/" + name
		}
		if _, err := fmt.Fprintf(w, "%s/%s\n", strings.ToLower(kind.String()), name); err != nil {
			return err
		}
	}
	return nil
}

// WriteJSON writes a document as indented JSON.
func WriteJSON(w io.Writer, v any) error {
	e := json.NewEncoder(Raw(w))
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}

// ValuesAnnotation has the possible values of a flag.
const ValuesAnnotation = "gitfleet.dev/values"
