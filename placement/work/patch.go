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

// A patch is one JSON patch operation.
type patch struct {
	op, path string
	// value is JSON, with variables if templated.
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

// An expandedRule is a rule with its variables replaced for one cluster.
type expandedRule struct {
	rule *rule
	// values are the values of the templated patches, in order.
	values []string
	err    error
}

// expand replaces the variables in the rule's values.
func (r *rule) expand(c placement.Cluster) expandedRule {
	x := expandedRule{rule: r, err: r.err}
	for _, p := range r.patches {
		if !p.templated || x.err != nil {
			continue
		}
		value, err := expandVariables(p.value, c)
		x.values, x.err = append(x.values, value), err
	}
	return x
}

// operations returns the rule's patches as one document, which is applied completely or not at
// all.
func (x expandedRule) operations() (jsonpatch.Patch, error) {
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

// overrideOne applies the candidates' rules to a manifest, in order. It returns nil if the
// manifest is left out, and the same pointer if nothing changed.
func (r *Renderer) overrideOne(m *Manifest, candidates []int, rules [][]expandedRule) (*Manifest, error) {
	var doc []byte // created when a patch needs it
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
	changed, err := m.withContent(doc)
	if err != nil {
		// The last rule that changed the object is reported as the cause.
		return nil, r.newOverrideError(&r.candidates[lastApplied(candidates, rules)], m, err)
	}
	return changed, nil
}

// lastApplied returns the last candidate that has a rule for this cluster.
func lastApplied(candidates []int, rules [][]expandedRule) int {
	for _, i := range slices.Backward(candidates) {
		if rules[i] != nil {
			return i
		}
	}
	panic("work: no rule patches the manifest")
}

// apply patches doc, or the manifest's own JSON if doc is nil.
func (x expandedRule) apply(m *Manifest, doc []byte) ([]byte, error) {
	if x.err != nil {
		return nil, x.err
	}
	ops, err := x.operations()
	if err != nil {
		return nil, err
	}
	if doc == nil {
		if doc, err = json.Marshal(m.Object.Content.Object); err != nil {
			return nil, err
		}
	}
	return ops.ApplyWithOptions(doc, &jsonpatch.ApplyOptions{SupportNegativeIndices: true})
}

// withContent returns the manifest with another content, which must have the same identity.
func (m *Manifest) withContent(doc []byte) (*Manifest, error) {
	// Not UnmarshalJSON, whose errors quote the document, which may be a Secret.
	u := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(doc, &u.Object); err != nil {
		return nil, errors.New("the result is not an object")
	}
	if err := checkIdentity(m.Object.Content, u); err != nil {
		return nil, err
	}
	if err := checkTextMaps(u); err != nil {
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
	object.Content, object.Hash = u, hash
	return &Manifest{Object: &object, Envelope: m.Envelope}, nil
}

// checkIdentity reports which of the identifying fields differ.
func checkIdentity(before, after *unstructured.Unstructured) error {
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

// checkTextMaps checks that labels and annotations are maps of strings.
func checkTextMaps(u *unstructured.Unstructured) error {
	for _, field := range []string{"labels", "annotations"} {
		if _, _, err := unstructured.NestedNullCoercingStringMap(u.Object, "metadata", field); err != nil {
			// The cause quotes the value, which may come from a Secret.
			return fmt.Errorf("the result's metadata.%s is not a map of text", field)
		}
	}
	return nil
}

// The variables of a patch's value.
const (
	nameVariable  = "${MEMBER-CLUSTER-NAME}"
	labelVariable = "${MEMBER-CLUSTER-LABEL-KEY-"
)

// hasVariables reports whether a value may differ between clusters.
func hasVariables(value string) bool {
	return strings.Contains(value, nameVariable) || strings.Contains(value, labelVariable)
}

// expandVariables replaces the cluster's name, and then its labels one after another until none
// is left. Nothing is escaped, since names and label values have no characters that are special
// in JSON. Text that only looks like a variable is kept.
func expandVariables(value string, c placement.Cluster) (string, error) {
	value = strings.ReplaceAll(value, nameVariable, c.Name)
	var out strings.Builder
	for rest := value; ; {
		before, after, found := strings.Cut(rest, labelVariable)
		out.WriteString(before)
		if !found {
			return out.String(), nil
		}
		key, tail, closed := strings.Cut(after, "}")
		// A bracket after a quote belongs to the JSON around the variable.
		if !closed || strings.ContainsAny(key, `"\\`) {
			return "", unclosedError{value}
		}
		label, ok := c.Labels[key]
		if !ok {
			return "", fmt.Errorf("label key %s not found on cluster %s", key, c.Name)
		}
		out.WriteString(label)
		rest = tail
	}
}

// An unclosedError quotes a whole value, which may come from a Secret.
type unclosedError struct{ value string }

func (e unclosedError) Error() string {
	return fmt.Sprintf("input %s is missing the closing bracket `}`", e.value)
}
