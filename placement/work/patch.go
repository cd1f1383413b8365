package work

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/listitem"
)

// An application is a rule that matches a cluster, with the variables of its patches replaced.
type application struct {
	candidate int
	rule      *rule
	// values are those of the rule's patches, in order, as JSON.
	values []string
	err    error
}

// expand replaces the variables in the rule's values.
func (r *rule) expand(candidate int, c placement.Cluster) application {
	a := application{candidate: candidate, rule: r, err: r.err}
	for _, p := range r.patches {
		if a.err == nil {
			var value string
			value, a.err = expandVariables(cmp.Or(string(p.Value), "null"), c)
			a.values = append(a.values, value)
		}
	}
	return a
}

// patch applies the rule's patches to a document, completely or not at all.
func (a application) patch(doc []byte) ([]byte, error) {
	if a.err != nil {
		return nil, a.err
	}
	ops := make(jsonpatch.Patch, len(a.values))
	for i, p := range a.rule.patches {
		if !json.Valid([]byte(a.values[i])) {
			return nil, fmt.Errorf("the value for %s %s is not valid JSON; quote text", p.Operator, p.Path)
		}
		op, path, value := quoted(string(p.Operator)), quoted(p.Path), json.RawMessage(a.values[i])
		ops[i] = jsonpatch.Operation{"op": &op, "path": &path}
		if p.Operator != api.JSONPatchRemove {
			ops[i]["value"] = &value
		}
	}
	out, err := ops.ApplyWithOptions(doc, applyOptions)
	if err != nil {
		for i, p := range a.rule.patches {
			if p.Operator == api.JSONPatchTest {
				if why := a.missed(doc, ops, i); why != "" {
					return nil, fmt.Errorf("the test of %s fails: %s; correct the index in this override", p.Path, why)
				}
			}
		}
	}
	return out, err
}

var applyOptions = &jsonpatch.ApplyOptions{SupportNegativeIndices: true}

// missed returns why the test with an index fails after the operations before it; empty if it does not, or if it is not
// of an item of a list.
func (a application) missed(doc []byte, ops jsonpatch.Patch, index int) string {
	before, err := ops[:index].ApplyWithOptions(doc, applyOptions)
	if err != nil {
		return "" // an earlier operation fails
	}
	if _, err := ops[index:index+1].ApplyWithOptions(before, applyOptions); err == nil {
		return ""
	}
	var object, value any
	if utiljson.Unmarshal(before, &object) != nil || utiljson.Unmarshal([]byte(a.values[index]), &value) != nil {
		return ""
	}
	return listitem.Missed(object, a.rule.patches[index].Path, value)
}

func quoted(s string) json.RawMessage {
	data, _ := json.Marshal(s) // a string always encodes
	return data
}

// apply applies rules to a manifest, in order. It returns nil if the manifest is left out, and
// the same pointer if nothing changed.
func (v *variant) apply(m *Manifest, rules []application) (*Manifest, error) {
	doc, err := json.Marshal(m.Object.Content.Object)
	for _, a := range rules {
		if a.rule.delete && a.err == nil {
			return nil, nil
		}
		if err == nil {
			doc, err = a.patch(doc)
		}
		if err != nil {
			return nil, v.newOverrideError(&v.candidates[a.candidate], a.rule, m, err)
		}
	}
	changed, err := m.withContent(doc)
	if err != nil {
		last := rules[len(rules)-1] // reported as the cause
		return nil, v.newOverrideError(&v.candidates[last.candidate], last.rule, m, err)
	}
	return changed, nil
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
	if m.HashKey != nil {
		api.SetSecretFields(u.Object, api.SecretFields(m.Object.Content.Object)) // which an override may have replaced
	}
	hash, err := hashObject(u, m.HashKey)
	if err != nil {
		return nil, err
	}
	if hash == m.Hash {
		return m, nil
	}
	object := *m.Object
	object.Content, object.Hash = u, hash
	return &Manifest{Object: &object, Envelope: m.Envelope, Encrypted: object.Ciphertext(), Overridden: true}, nil
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
