package work

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
)

// A patch is one operation; the rules of an override hold them in order.
type patch struct {
	op, path string
	// value is JSON, with variables in it if templated.
	value     string
	templated bool
}

func patchesOf(declared []api.JSONPatchOverride) []patch {
	patches := make([]patch, len(declared))
	for i, d := range declared {
		p := patch{op: string(d.Operator), path: d.Path, value: string(d.Value)}
		if p.value == "" {
			p.value = "null"
		}
		p.templated = hasVariables(p.value)
		patches[i] = p
	}
	return patches
}

// An expanded is a rule for one cluster.
type expanded struct {
	rule *rule
	// values are those of the templated patches, in order.
	values []string
	err    error
}

// expand replaces the variables in the rule's values.
func (r *rule) expand(c placement.Cluster) expanded {
	x := expanded{rule: r, err: r.err}
	for _, p := range r.patches {
		if !p.templated || x.err != nil {
			continue
		}
		value, err := expandVariables(p.value, c)
		x.values, x.err = append(x.values, value), err
	}
	return x
}

// operations are the rule's patches as one document, which applies whole or
// not at all.
func (x expanded) operations() (jsonpatch.Patch, error) {
	values := x.values
	ops := make(jsonpatch.Patch, len(x.rule.patches))
	for i, p := range x.rule.patches {
		value := p.value
		if p.templated {
			value, values = values[0], values[1:]
		}
		if !json.Valid([]byte(value)) {
			return nil, fmt.Errorf("the value for %s %s is not valid JSON; quote text", p.op, p.path)
		}
		op, path, raw := quoted(p.op), quoted(p.path), json.RawMessage(value)
		ops[i] = jsonpatch.Operation{"op": &op, "path": &path}
		if p.op != string(api.JSONPatchRemove) {
			ops[i]["value"] = &raw
		}
	}
	return ops, nil
}

func quoted(s string) json.RawMessage {
	data, _ := json.Marshal(s) // a string always encodes
	return data
}

// overrideOne applies to a manifest what its candidates say, in order. It
// returns nil if the manifest is dropped, and the same pointer if it comes out
// as it was.
func (r *Renderer) overrideOne(m *Manifest, candidates []int, rules [][]expanded) (*Manifest, error) {
	var doc []byte // nil until a patch needs it
	for _, i := range candidates {
		for _, x := range rules[i] {
			if x.rule.delete && x.err == nil {
				return nil, nil
			}
			next, err := x.apply(m, doc)
			if err != nil {
				return nil, r.newOverrideError(&r.candidates[i], m, err)
			}
			doc = next
		}
	}
	if doc == nil {
		return m, nil
	}
	changed, err := m.with(doc)
	if err != nil {
		// The last one that patched made it so, or could have mended it.
		return nil, r.newOverrideError(&r.candidates[last(candidates, rules)], m, err)
	}
	return changed, nil
}

// last is the last of the candidates that has a rule for this cluster.
func last(candidates []int, rules [][]expanded) int {
	for _, i := range slices.Backward(candidates) {
		if rules[i] != nil {
			return i
		}
	}
	panic("work: a manifest was patched by nobody")
}

// apply patches the manifest's JSON, doc, or what it is without any patch.
func (x expanded) apply(m *Manifest, doc []byte) ([]byte, error) {
	if x.err != nil {
		return nil, x.err
	}
	ops, err := x.operations()
	if err != nil {
		return nil, err
	}
	if doc == nil {
		if doc, err = json.Marshal(m.Object.Object.Object); err != nil {
			return nil, err
		}
	}
	return ops.ApplyWithOptions(doc, &jsonpatch.ApplyOptions{SupportNegativeIndices: true})
}

// with returns the manifest with other content. The content has to name the
// same object.
func (m *Manifest) with(doc []byte) (*Manifest, error) {
	// Not UnmarshalJSON, whose errors quote the document: it may be a Secret.
	u := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(doc, &u.Object); err != nil {
		return nil, errors.New("the result is not an object")
	}
	if err := sameIdentity(m.Object.Object, u); err != nil {
		return nil, err
	}
	if err := textMaps(u); err != nil {
		return nil, err
	}
	hash, err := hashObject(u)
	if err != nil {
		return nil, err
	}
	if hash == m.Hash {
		return m, nil
	}
	object := *m.Object
	object.Object, object.Hash = u, hash
	return &Manifest{Object: &object, Envelope: m.Envelope}, nil
}

// sameIdentity reports which of the fields that name an object differ.
func sameIdentity(before, after *unstructured.Unstructured) error {
	var changed []string
	for _, f := range []struct {
		field         string
		before, after string
	}{
		{"apiVersion", before.GetAPIVersion(), after.GetAPIVersion()},
		{"kind", before.GetKind(), after.GetKind()},
		{"metadata.name", before.GetName(), after.GetName()},
		{"metadata.namespace", before.GetNamespace(), after.GetNamespace()},
	} {
		if f.before != f.after {
			changed = append(changed, f.field)
		}
	}
	if changed != nil {
		return errors.New("an override must not change " + strings.Join(changed, ", "))
	}
	return nil
}

// textMaps checks that labels and annotations can still be read as such.
func textMaps(u *unstructured.Unstructured) error {
	for _, field := range []string{"labels", "annotations"} {
		if _, _, err := unstructured.NestedNullCoercingStringMap(u.Object, "metadata", field); err != nil {
			// The cause quotes the value, which a Secret must not show.
			return fmt.Errorf("the result's metadata.%s is not a map of text", field)
		}
	}
	return nil
}
