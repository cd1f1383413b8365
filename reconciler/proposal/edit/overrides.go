package edit

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/proposal/yamledit"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// newOverride makes the change in a new override for the clusters that have it. It returns nil
// if no override can.
func (a *attempt) newOverride() *Result {
	key := a.Changed[0].Placement
	if slices.ContainsFunc(a.Changed, func(h status.Holder) bool { return h.Placement != key }) {
		return nil
	}
	name := a.overrideName()
	text, err := a.overrideText(name, key)
	if err != nil {
		return nil
	}
	for _, dir := range a.directories(key) {
		files, err := a.with(nil, path.Join(dir, "override-"+name+".yaml"), text)
		if err == nil && files[0].Before == nil && a.verify(files, a.Others) == nil {
			return &Result{Files: files, Override: a.overrideKind() + " " + name}
		}
	}
	return nil
}

var notInNames = regexp.MustCompile(`[^a-z0-9-]+`)

// overrideName returns a name that is the same for the same object and clusters.
func (a *attempt) overrideName() string {
	h := sha256.New()
	fmt.Fprintln(h, a.ID.String())
	for _, at := range a.Changed {
		fmt.Fprintln(h, at.Placement.String(), at.Cluster)
	}
	name := strings.Trim(notInNames.ReplaceAllString(strings.ToLower(a.ID.Name), "-"), "-")
	return strings.TrimLeft(name[:min(len(name), 40)]+"-"+hex.EncodeToString(h.Sum(nil)[:4]), "-")
}

func (a *attempt) overrideKind() string {
	if a.ID.Namespace == "" {
		return "ClusterResourceOverride"
	}
	return "ResourceOverride"
}

// directories returns where a new override may be written: beside the object, beside the
// placement, or at the top. Files beside a kustomization are read only if the kustomization
// lists them.
func (a *attempt) directories(key api.PlacementKey) []string {
	built := map[string]bool{}
	for _, files := range a.editor.Head.Sources {
		for _, file := range files {
			built[path.Dir(file)] = true
		}
	}
	var out []string
	add := func(o api.Origin) {
		if dir := path.Dir(o.Path); !built[dir] && !slices.Contains(out, dir) {
			out = append(out, dir)
		}
	}
	add(a.manifest.Origin)
	for _, p := range a.editor.Head.Placements {
		if p.Key == key {
			add(p.Origin)
		}
	}
	for _, c := range a.editor.Head.Clusters {
		if c.Name == a.Changed[0].Cluster {
			add(c.Origin)
		}
	}
	return out
}

// An overrideSpec is the spec of an override, in the order in which people usually write it.
type overrideSpec struct {
	Placement                map[string]any   `yaml:"placement"`
	ClusterResourceSelectors []objectSelector `yaml:"clusterResourceSelectors,omitempty"`
	ResourceSelectors        []objectSelector `yaml:"resourceSelectors,omitempty"`
	Policy                   map[string]any   `yaml:"policy"`
}

type objectSelector struct{ Group, Version, Kind, Name string }

// overrideText returns the text of an override that makes the change.
func (a *attempt) overrideText(name string, key api.PlacementKey) ([]byte, error) {
	rules, err := a.newRules()
	if err != nil {
		return nil, err
	}
	metadata := map[string]any{"name": name}
	spec := overrideSpec{Placement: map[string]any{"name": key.Name}, Policy: map[string]any{"overrideRules": rules}}
	selectors := []objectSelector{{a.ID.Group, a.manifest.Object.Content.GroupVersionKind().Version, a.ID.Kind, a.ID.Name}}
	if a.ID.Namespace == "" {
		spec.ClusterResourceSelectors = selectors
	} else {
		metadata["namespace"], spec.ResourceSelectors = a.ID.Namespace, selectors
	}
	if key.Namespace != "" {
		spec.Placement["scope"] = string(api.NamespaceScoped)
	}
	text, err := yamledit.Block(map[string]any{"apiVersion": api.PlacementGroup + "/v1beta1", "kind": a.overrideKind(), "metadata": metadata, "spec": spec})
	return []byte(text), err
}

// newRules returns the rules of an override that make the change on the clusters that have it: one, unless it needs
// more operations than a rule may have.
func (a *attempt) newRules() ([]any, error) {
	rule := func() map[string]any {
		return map[string]any{"clusterSelector": map[string]any{"clusterSelectorTerms": []any{map[string]any{"labelSelector": a.selector()}}}}
	}
	if a.Deleted {
		deletes := rule()
		deletes["overrideType"] = string(api.DeleteOverrideType)
		return []any{deletes}, nil
	}
	operations, err := operationsOf(a.manifest.Object.Content.Object, a.edits)
	var out []any
	var last []any
	add := func() {
		patches := rule()
		patches["jsonPatchOverrides"] = last
		out = append(out, patches)
	}
	for _, group := range operations {
		if len(last)+len(group) > maxOperations {
			add()
			last = nil
		}
		last = append(last, group...)
	}
	add()
	return out, err
}

// selector selects the clusters that have the change and no others that get the object: by a
// label that several of them have, or by name.
func (a *attempt) selector() map[string]any {
	first := a.editor.before.clusters[a.Changed[0].Cluster].Labels
	for _, key := range slices.Sorted(maps.Keys(first)) {
		has := func(h status.Holder) bool {
			value, there := a.editor.before.clusters[h.Cluster].Labels[key]
			return there && value == first[key]
		}
		common := !slices.ContainsFunc(a.Changed, func(h status.Holder) bool { return !has(h) })
		if len(a.Changed) > 1 && key != api.MemberNameLabel && common && !slices.ContainsFunc(a.Others, has) {
			return map[string]any{"matchLabels": map[string]any{key: first[key]}}
		}
	}
	var names []any
	for _, at := range a.Changed {
		names = append(names, at.Cluster)
	}
	if len(names) == 1 {
		return map[string]any{"matchLabels": map[string]any{api.MemberNameLabel: names[0]}}
	}
	return map[string]any{"matchExpressions": []any{map[string]any{"key": api.MemberNameLabel, "operator": "In", "values": names}}}
}

// An existingOverride is an override in the commit that is for this object only. An object
// cannot have two.
type existingOverride struct {
	name   string
	origin api.Origin
	rules  []api.OverrideRule
}

// inExistingOverride makes the change in an existing override: in a rule that sets the field,
// in a rule for exactly the clusters that have the change, or in a new rule after all others,
// which takes precedence. It returns nil if none of them can.
func (a *attempt) inExistingOverride() *Result {
	for _, o := range a.existingOverrides() {
		made := func(files []FileChange, err error) *Result {
			if err != nil || a.verify(files, a.Others) != nil {
				return nil
			}
			return &Result{Files: files, Override: a.overrideKind() + " " + o.name}
		}
		for i, rule := range o.rules {
			if a.Deleted || rule.OverrideType == api.DeleteOverrideType || rule.ClusterSelector == nil {
				continue
			}
			if edit := made(a.inRule(o, i)); edit != nil {
				return edit
			}
		}
		if len(a.Others) == 0 {
			continue
		}
		if edit := made(a.inNewRule(o)); edit != nil {
			return edit
		}
	}
	return nil
}

func (a *attempt) existingOverrides() []existingOverride {
	var out []existingOverride
	add := func(name string, origin api.Origin, selectors int, policy *api.OverridePolicy) {
		if selectors == 1 && policy != nil && origin.Kustomization == "" && origin.Line > 0 {
			out = append(out, existingOverride{name, origin, policy.OverrideRules})
		}
	}
	for _, o := range a.editor.Head.ClusterOverrides {
		if s := o.Spec.ClusterResourceSelectors; a.ID.Namespace == "" && len(s) > 0 && s[0].Group == a.ID.Group && s[0].Kind == a.ID.Kind && s[0].Name == a.ID.Name {
			add(o.Name, o.Origin, len(s), o.Spec.Policy)
		}
	}
	for _, o := range a.editor.Head.Overrides {
		if s := o.Spec.ResourceSelectors; o.Namespace == a.ID.Namespace && len(s) > 0 && s[0].Group == a.ID.Group && s[0].Kind == a.ID.Kind && s[0].Name == a.ID.Name {
			add(o.Name, o.Origin, len(s), o.Spec.Policy)
		}
	}
	return out
}

// selects reports whether a rule applies to a cluster.
func (a *attempt) selects(rule api.OverrideRule, at status.Holder) bool {
	terms := rule.ClusterSelector.ClusterSelectorTerms
	return len(terms) == 0 || slices.ContainsFunc(terms, func(t api.ClusterSelectorTerm) bool {
		s, err := metav1.LabelSelectorAsSelector(t.LabelSelector)
		return err == nil && s.Matches(labels.Set(a.editor.before.clusters[at.Cluster].Labels))
	})
}

// selectsExactly reports whether a rule applies to the clusters that have the change, and to no others
// that have the object.
func (a *attempt) selectsExactly(rule api.OverrideRule) bool {
	return len(a.Others) > 0 && !slices.ContainsFunc(a.Changed, func(h status.Holder) bool { return !a.selects(rule, h) }) &&
		!slices.ContainsFunc(a.Others, func(h status.Holder) bool { return a.selects(rule, h) })
}

// inRule makes the change in a rule of an override: in the operations on its fields, and in new
// operations if the rule applies to exactly these clusters.
func (a *attempt) inRule(o existingOverride, index int) ([]FileChange, error) {
	rule := o.rules[index]
	at := fmt.Sprintf("/spec/policy/overrideRules/%d/jsonPatchOverrides", index)
	operations, err := operationsOf(a.manifest.Object.Content.Object, a.edits)
	if err != nil {
		return nil, err
	}
	var edits []yamledit.FieldEdit
	for n, e := range a.edits {
		sets := func(p api.JSONPatchOverride) bool {
			return p.Path == e.Path && p.Operator != api.JSONPatchRemove && p.Operator != api.JSONPatchTest
		}
		switch i := slices.IndexFunc(rule.JSONPatchOverrides, sets); {
		case i >= 0 && !e.Remove:
			edits = append(edits, yamledit.FieldEdit{Path: fmt.Sprintf("%s/%d/value", at, i), Value: e.Value})
		case !a.selectsExactly(rule):
			return nil, fmt.Errorf("%s: the override does not set %s", o.origin, e.Path)
		default:
			for _, operation := range operations[n] {
				edits = append(edits, yamledit.FieldEdit{Path: at + "/-", Value: operation})
			}
		}
	}
	return a.inOverride(o, edits)
}

// inNewRule makes the change in a new rule after the existing ones.
func (a *attempt) inNewRule(o existingOverride) ([]FileChange, error) {
	rules, err := a.newRules()
	if err != nil {
		return nil, err
	}
	var edits []yamledit.FieldEdit
	for _, rule := range rules {
		edits = append(edits, yamledit.FieldEdit{Path: "/spec/policy/overrideRules/-", Value: rule})
	}
	return a.inOverride(o, edits)
}

// inOverride edits the file of an override.
func (a *attempt) inOverride(o existingOverride, edits []yamledit.FieldEdit) ([]FileChange, error) {
	return a.inFile(nil, site{o.origin.Path, yamledit.BeginningOn(o.origin.Line), edits})
}
