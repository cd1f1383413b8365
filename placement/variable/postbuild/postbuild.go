// Package postbuild replaces variables such as ${domain:=example.com} in built objects, as Flux does for spec.postBuild of a
// Kustomization.
//
// Flux replaces them in the YAML text of an object; here they are replaced in its texts and keys one by one, so that a plain
// value never adds fields: one that is written as a flow list or mapping of YAML replaces the field as a whole. A field that must be a text
// stays one. No value is looked through for variables again.
package postbuild

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	node "go.yaml.in/yaml/v3"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/gitfleet/gitfleet/placement/variable"
)

// Annotation is the annotation or label of objects in which Flux replaces nothing if its value is disabled.
const Annotation = "kustomize.toolkit.fluxcd.io/substitute"

// Applies reports whether an object may have variables and does not disable their substitution.
func Applies(object map[string]any) bool {
	metadata, _ := object["metadata"].(map[string]any)
	for _, field := range []string{"labels", "annotations"} {
		values, _ := metadata[field].(map[string]any)
		if values[Annotation] == "disabled" {
			return false
		}
	}
	return isIn(object)
}

func isIn(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		for key, field := range v {
			if isIn(key) || isIn(field) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, isIn)
	case string:
		return strings.Contains(v, "${") || strings.Contains(v, "$$")
	}
	return false
}

// Names returns the names of the variables in a value, sorted, including those in defaults. Texts that cannot be parsed are skipped.
func Names(v any) []string {
	names := map[string]bool{}
	collect(v, names, map[string]bool{})
	return slices.Sorted(maps.Keys(names))
}

// Required returns those of Names that occur without a default.
func Required(v any) []string {
	required := map[string]bool{}
	collect(v, map[string]bool{}, required)
	return slices.Sorted(maps.Keys(required))
}

func collect(v any, names, required map[string]bool) {
	switch v := v.(type) {
	case map[string]any:
		for key, field := range v {
			collect(key, names, required)
			collect(field, names, required)
		}
	case []any:
		for _, item := range v {
			collect(item, names, required)
		}
	case string:
		if parts, err := parse(v); err == nil {
			collectParts(parts, names, required)
		}
	}
}

func collectParts(parts []part, names, required map[string]bool) {
	for _, p := range parts {
		if p.name == "" {
			continue
		}
		names[p.name] = true
		if !p.hasFallback {
			required[p.name] = true
		}
		collectParts(p.fallback, names, required)
	}
}

// maxErrors limits the errors of one object.
const maxErrors = 20

// An Error is an error at a field of an object.
type Error struct {
	Field []string
	Err   error
}

// An Undefined is a variable that has neither a value nor a default.
type Undefined struct {
	Name string
	// Secret reports whether the variable is in a Secret. Its name may then be part of a password, and the message does not have it.
	Secret bool
}

func (e *Undefined) Error() string {
	if e.Secret {
		return "a variable has no value"
	}
	return "variable " + e.Name + " has no value"
}

// Key identifies a field by its path.
func Key(path []string) string { return strings.Join(path, "\x00") }

// Replace returns a copy of an object with the values of variables. texts are the keys of the fields that stay texts. The errors about a
// Secret have no part of its texts.
func Replace(object map[string]any, values map[string]string, texts map[string]bool) (map[string]any, []Error) {
	r := &replacement{values: values, texts: texts, room: variable.MostGrowth, secret: object["kind"] == "Secret"}
	out, _ := variable.Copy(object, r).(map[string]any)
	if r.room < 0 {
		return nil, []Error{{nil, variable.ErrTooLarge}}
	}
	return out, r.errs
}

type replacement struct {
	values map[string]string
	texts  map[string]bool
	errs   []Error
	secret bool
	// room is how much larger the object may still become.
	room int
}

// Key returns the key with the values of its variables.
func (r *replacement) Key(key string, at []string) string { return r.text(key, at) }

// SameKeys records that variables have made keys the same.
func (r *replacement) SameKeys(key string, at []string) {
	r.fail(at, fmt.Errorf("two keys are %q once their variables are replaced; rename one of them, or change the value of its variable", key), errSameKeys)
}

// Text returns the text with the values of its variables, or what that is as YAML.
func (r *replacement) Text(v string, at []string) any {
	text := r.text(v, at)
	if text == v || r.texts[Key(at)] {
		return text
	}
	return r.typed(v, text)
}

// typed returns a text in which variables have been replaced as Flux has it, which writes what was there as YAML and reads the result:
// ${replicas} may become a number, and ${quote}${id}${quote} with a quotation mark as quote is a text.
func (r *replacement) typed(before, text string) any {
	if text == "" {
		return nil
	}
	written, err := yaml.Marshal(before)
	if err != nil || strings.ContainsAny(string(written[:1]), `'"|>`) || !r.isValue(text) {
		return text
	}
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		return text
	}
	var value any
	if utiljson.Unmarshal(data, &value) != nil {
		return text
	}
	begins := func(with string) bool { return text != "" && strings.Contains(with, text[:1]) }
	switch value.(type) {
	case nil:
		if text != "null" && text != "~" {
			return text
		}
	case string:
		if !begins(`"'`) {
			return text
		}
	case map[string]any, []any:
		if !begins("{[") {
			return text
		}
	}
	return value
}

// maxDepth limits how deeply lists and mappings are nested in a value. nodeBytes is the approximate size of one of their items in memory.
const (
	maxDepth  = 50
	nodeBytes = 64
)

// isValue reports whether a text may be read as YAML: it is a scalar, or a list or mapping in brackets. One with anchors is not, since a
// few bytes with aliases can take all memory.
func (r *replacement) isValue(text string) bool {
	var doc node.Node
	if node.Unmarshal([]byte(text), &doc) != nil || len(doc.Content) != 1 {
		return false
	}
	root := doc.Content[0]
	if root.Kind != node.ScalarNode && root.Style&node.FlowStyle == 0 {
		return false
	}
	nodes := 0
	var isPlain func(n *node.Node, depth int) bool
	isPlain = func(n *node.Node, depth int) bool {
		nodes++
		return n.Anchor == "" && n.Kind != node.AliasNode && depth <= maxDepth &&
			!slices.ContainsFunc(n.Content, func(item *node.Node) bool { return !isPlain(item, depth+1) })
	}
	if !isPlain(root, 0) {
		return false
	}
	r.room -= nodeBytes * (nodes - 1)
	return true
}

func (r *replacement) text(text string, at []string) string {
	if r.room < 0 || !isIn(text) { // without room, nothing of the object is used
		return text
	}
	parts, err := parse(text)
	if err != nil {
		r.fail(at, err, errUnreadable)
		return text
	}
	return r.join(parts, at)
}

func (r *replacement) join(parts []part, at []string) string {
	var out strings.Builder
	for _, p := range parts {
		if p.name == "" {
			out.WriteString(p.text)
			continue
		}
		value, err := r.valueOf(p, at)
		if err != nil {
			r.fail(at, err, err)
		}
		if r.room -= len(value); r.room < 0 {
			break
		}
		out.WriteString(value)
	}
	return out.String()
}

func (r *replacement) valueOf(p part, at []string) (string, error) {
	value, known := r.values[p.name]
	switch {
	case p.hasFallback && value == "":
		return r.join(p.fallback, at), nil
	case !known:
		return "", &Undefined{p.name, r.secret}
	case p.change == nil:
		return value, nil
	}
	return p.change(value), nil
}

// fail records an error, or inSecret if the object is a Secret.
func (r *replacement) fail(at []string, err, inSecret error) {
	if r.secret {
		err = inSecret
	}
	if len(r.errs) < maxErrors {
		r.errs = append(r.errs, Error{slices.Clone(at), err})
	}
}

var (
	// These are about Secrets.
	errUnreadable = errors.New("a variable cannot be read; correct it, or write $${ for the text ${")
	errSameKeys   = errors.New("two keys are the same")
)
