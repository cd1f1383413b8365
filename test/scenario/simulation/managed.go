package simulation

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"strings"
	"testing/fstest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/yaml"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/test/simulated"
)

// The objects of some namespaces are not ConfigMaps but of kinds whose fields have real owners: they are applied as a
// member applies them, and stored as an API server stores them.

// A managedKind is such a kind.
type managedKind struct {
	schema.GroupVersionKind
	manifest func(name, value string) string
	override func(name string, o override) string
	value    func(u *unstructured.Unstructured) string
	parts    []part
}

// managedKinds are these kinds by the namespace of their objects.
var managedKinds = map[string]managedKind{
	ingressNamespace: {ingressKind, ingress, ingressOverride, func(u *unstructured.Unstructured) string {
		return strings.TrimPrefix(ingressPath(u)["path"].(string), "/")
	}, ingressParts},
	deploymentNamespace: {deploymentKind, deployment, deploymentOverride, func(u *unstructured.Unstructured) string {
		value, _ := getPart(u.Object, imagePath).(string)
		return value
	}, deploymentParts},
}

// A part is what the manifests of a kind have or not: that depends on their value.
type part struct {
	// path has the names of fields, and those of the items of keyed lists.
	path []string
	// value is what Git says, and edited what somebody else does.
	value, edited any
	// bit is the bit of the hash of the value that decides. Of two parts with the same bit, which are alternatives, a
	// manifest has the second if the bit is not set.
	bit    uint
	second bool
}

// in reports whether manifests with a value have the part.
func (p part) in(value string) bool {
	sum := fnv.New32a()
	io.WriteString(sum, value) // never fails
	return sum.Sum32()>>(7*p.bit)&1 == 1 != p.second
}

func (p part) isItem() bool { return keyedLists[p.path[len(p.path)-2]] }

// keyedLists are the lists in paths of parts. Their items are told apart by name.
var keyedLists = map[string]bool{"containers": true, "env": true}

func itemNamed(items []any, name string) map[string]any {
	for _, item := range items {
		if item := item.(map[string]any); item["name"] == name {
			return item
		}
	}
	return nil
}

// getPart returns the value at a path; nil if there is none.
func getPart(fields map[string]any, path []string) any {
	next, rest := fields[path[0]], path[1:]
	if keyedLists[path[0]] {
		items, _ := next.([]any)
		item := itemNamed(items, path[1])
		if item == nil {
			return nil
		}
		next, rest = item, path[2:]
	}
	if len(rest) == 0 {
		return next
	}
	inner, _ := next.(map[string]any)
	return getPart(inner, rest)
}

// putPart sets the value at a path.
func putPart(fields map[string]any, path []string, value any) {
	key, rest := path[0], path[1:]
	var next map[string]any
	switch items, _ := fields[key].([]any); {
	case keyedLists[key]:
		if next = itemNamed(items, path[1]); next == nil {
			next = map[string]any{"name": path[1]}
			fields[key] = append(items, next)
		}
		if rest = path[2:]; len(rest) == 0 {
			for name, v := range value.(map[string]any) {
				next[name] = runtime.DeepCopyJSONValue(v)
			}
			return
		}
	case len(rest) == 0:
		fields[key] = runtime.DeepCopyJSONValue(value)
		return
	default:
		if next, _ = fields[key].(map[string]any); next == nil {
			next = map[string]any{}
			fields[key] = next
		}
	}
	putPart(next, rest, value)
}

// putManaged replaces the files of the ConfigMaps that are of other kinds, and of their overrides.
func (d *desired) putManaged(files fstest.MapFS) {
	for space, kind := range managedKinds {
		put := func(what, name, text string) {
			files[what+"-"+space+"-"+name+".yaml"] = &fstest.MapFile{Data: []byte(text)}
		}
		for name, value := range d.configMaps[space] {
			text := kind.manifest(name, value)
			if d.parts {
				text = kind.withParts(name, text, value)
			}
			put("configmap", name, text)
		}
		for id, o := range d.overrides {
			if id.Namespace == space {
				put("override", id.Name, kind.override(id.Name, o))
			}
		}
	}
}

// withParts returns a manifest with the parts that its value has. The drift of some objects is left as it is.
func (k managedKind) withParts(name, text, value string) string {
	var o map[string]any
	if err := yaml.Unmarshal([]byte(text), &o); err != nil {
		panic(err)
	}
	for _, p := range k.parts {
		if p.in(value) {
			putPart(o, p.path, p.value)
		}
	}
	if name == reportedName {
		putPart(o, []string{"metadata", "annotations", api.DriftAnnotation}, string(api.DriftReport))
	}
	out, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	return string(out) + "\n"
}

func (w *world) fieldManager(kind schema.GroupVersionKind) *managedfields.FieldManager {
	m, err := simulated.FieldManager(kind)
	if err != nil {
		w.t.Fatal(err)
	}
	return m
}

// applyManaged sets what a host stores after an object was applied, as a member does it, and as an API server carries it
// out; ok is false if that is refused. old is nil for a new object.
func (a *agent) applyManaged(m *work.Manifest, old, next *liveObject) (ok bool) {
	x := applyRequest{a.d.w, diff.Request{Desired: m.Object.Content, Manager: api.FieldManager, Force: true}}
	var err error
	if x.Ignored, err = diff.IgnoredFields(m.Object.Content); err != nil {
		a.d.w.t.Error(err)
	}
	x.KeepShared = leavesDrift(m)
	last := diff.LastApply{}
	if old != nil && old.stored != nil {
		x.Live = old.stored
		drifted := old.managed != "" && diff.ApplyHash(old.stored.GetManagedFields(), api.FieldManager) != old.managed
		last = diff.LastApply{Drifted: drifted, Superseded: old.hash != m.Hash, Managed: old.managed, Left: old.left}
		if was := a.lastApplied[m.ID]; was != nil && was.Hash == old.hash && last.Superseded {
			x.Before = was.Object.Content
		}
	}
	stored, gone, err := x.apply(last)
	if err != nil {
		a.d.w.logf("cluster %s does not apply %s: %v", a.name, title(m.ID), err)
		return false
	}
	if m.ID.Kind == ingressKind.Kind && x.Live != nil && ignoredFieldsOf(stored) != ignoredFieldsOf(x.Live) {
		a.d.w.violate(invariantIgnored, "%s applies %s, and what was %+v is %+v", a.name, title(m.ID), ignoredFieldsOf(x.Live), ignoredFieldsOf(stored))
	}
	next.stored, next.managed = stored, diff.ApplyHash(stored.GetManagedFields(), api.FieldManager)
	next.left = gone.Stayed(last.Left, stored).In(stored, m.Object.Content)
	if next.left != "" {
		a.d.w.logf("what Git has removed is still there in %s on cluster %s: %s", title(m.ID), a.name, next.left)
	}
	if old != nil && old.stored != nil {
		next.applied = old.applied
		if x.Before == nil { // a field that others have changed while gitfleet did not run may stay
			next.applied &^= old.edited & managedKinds[m.ID.Namespace].partsInFields()
		}
	}
	next.noteApplied(m.Object.Content)
	a.lastApplied[m.ID] = m
	return true
}

// leavesDrift reports whether a manifest says that drift is left as it is.
func leavesDrift(m *work.Manifest) bool {
	r, err := api.ParseDriftRule(m.Object.Content.GetAnnotations()[api.DriftAnnotation])
	return err == nil && r.Mode != api.DriftRevert
}

// An applyRequest is an apply as a member carries it out.
type applyRequest struct {
	w *world
	diff.Request
}

// apply takes ownership of what the apply would leave, applies, and applies again if the server refuses that or if something has stayed.
func (x *applyRequest) apply(last diff.LastApply) (stored *unstructured.Unstructured, gone diff.Removal, err error) {
	if x.Live != nil {
		gone = x.takeOwnership(diff.Removed(x.Request, last))
	}
	stored, err = x.send()
	if err != nil && x.Live != nil {
		fresh, refusal := x.w.applyAs(x.Manager, x.Desired, nil)
		if refusal != nil {
			return nil, gone, refusal
		}
		if more := x.takeOwnership(diff.Opposed(x.Request).Union(diff.Surplus(x.Request, fresh, nil))); !more.Empty() {
			gone = gone.Union(more)
			stored, err = x.send()
		}
	}
	if err != nil || x.Before == nil {
		return stored, gone, err
	}
	x.Live = stored
	if rest := x.takeOwnership(diff.RemovedFrom(x.Request, nil)); !rest.Empty() {
		stored, err = x.send()
	}
	return stored, gone, err
}

// takeOwnership makes gitfleet the only owner of what has to go, with the patch that a member sends.
func (x *applyRequest) takeOwnership(r diff.Removal) diff.Removal {
	if x.w.mutant.Removes != nil {
		r = x.w.mutant.Removes(r)
	}
	if r.Empty() {
		return r
	}
	raw, err := r.OwnershipPatch(x.Live, api.FieldManager)
	var patch []struct {
		Path  string
		Value json.RawMessage
	}
	if err == nil {
		err = json.Unmarshal(raw, &patch)
	}
	var entries []metav1.ManagedFieldsEntry
	for _, op := range patch {
		if op.Path == "/metadata/managedFields" && err == nil {
			err = json.Unmarshal(op.Value, &entries)
		}
	}
	if err != nil {
		x.w.t.Fatal(err)
	}
	x.Live = x.Live.DeepCopy()
	x.Live.SetManagedFields(entries)
	return r
}

// send applies the object.
func (x *applyRequest) send() (*unstructured.Unstructured, error) {
	sent, err := diff.Leave(x.Desired, x.Live, x.Ignored, x.Manager)
	if err != nil {
		return nil, err
	}
	return x.w.applyAs(x.Manager, sent, x.Live)
}

// applyAs applies an object as a field manager. The server refuses two alternatives.
func (w *world) applyAs(manager string, sent, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if live == nil {
		live = &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": sent.GetAPIVersion(), "kind": sent.GetKind(), "metadata": map[string]any{"name": sent.GetName(), "namespace": sent.GetNamespace()},
		}}
	}
	out, err := w.fieldManager(sent.GroupVersionKind()).Apply(live.DeepCopy(), sent.DeepCopy(), manager, true)
	if err != nil {
		w.t.Error(err)
		return nil, err
	}
	return checkAlternatives(out.(*unstructured.Unstructured))
}

func checkAlternatives(u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	kind := managedKinds[u.GetNamespace()]
	for i, p := range kind.parts {
		if p.second && getPart(u.Object, p.path) != nil && getPart(u.Object, kind.parts[i-1].path) != nil {
			return nil, fmt.Errorf("%s and %s are alternatives", strings.Join(kind.parts[i-1].path, "."), strings.Join(p.path, "."))
		}
	}
	return u, nil
}
