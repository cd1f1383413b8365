package simulated

import (
	"fmt"
	"slices"
	"sync"
	"unique"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/yaml"
)

// A merger tracks field ownership for all clusters of a fleet. The result of an apply depends
// only on the content and the patch, so it is computed once for all clusters with the same.
type merger struct {
	builtIn managedfields.TypeConverter

	mu       sync.Mutex
	managers map[managerKey]*managedfields.FieldManager
	applied  map[applyKey]*merged
}

type managerKey struct {
	kind        schema.GroupVersionKind
	subresource string
}

type applyKey struct {
	managerKey
	name, namespace string
	before          unique.Handle[content] // zero if there was none
	patch, manager  string
	force           bool
}

// A merged is the result of an apply.
type merged struct {
	content unique.Handle[content]
	// times has, for each entry of managedFields, the index of the entry whose time it keeps, or
	// justNow.
	times  []int64
	object map[string]any // must not be changed
	err    error
}

// justNow in merged.times is the time of the apply.
const justNow = -1

func newMerger() *merger {
	return &merger{
		builtIn:  applyconfigurations.NewTypeConverter(scheme.Scheme),
		managers: map[managerKey]*managedfields.FieldManager{}, applied: map[applyKey]*merged{},
	}
}

// most is how many results are remembered: what happens to many clusters
// happens to them at about the same time.
const most = 20_000

// apply applies a patch, in YAML or JSON, to an existing object or to none.
func (m *merger) apply(k *kind, sub, namespace, name string, before *object, patch []byte, manager string, force bool) *merged {
	key := applyKey{managerKey: managerKey{k.GroupVersionKind, sub}, name: name, namespace: namespace, patch: string(patch), manager: manager, force: force}
	if before != nil {
		key.before = before.content
	}
	m.mu.Lock()
	done := m.applied[key]
	m.mu.Unlock()
	if done != nil {
		return done
	}
	done = m.reckon(k, sub, namespace, name, before, patch, manager, force)
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.applied) >= most {
		clear(m.applied)
	}
	m.applied[key] = done
	return done
}

func (m *merger) reckon(k *kind, sub, namespace, name string, before *object, patch []byte, manager string, force bool) *merged {
	wanted, err := decode(patch)
	if err == nil {
		err = fits(k, wanted, namespace, name)
	}
	if err != nil {
		return &merged{err: err}
	}
	fields, err := m.fields(k, sub)
	if err != nil {
		return &merged{err: err}
	}
	live := empty(k, namespace, name)
	entries := 0
	if before != nil {
		live, entries = before.coded(), len(before.times)
	}
	for _, field := range own {
		if field != "name" && field != "namespace" {
			unstructured.RemoveNestedField(live, "metadata", field)
		}
	}
	wanted.SetNamespace(namespace)
	out, err := fields.Apply(&unstructured.Unstructured{Object: live}, wanted, manager, force)
	if err != nil {
		return &merged{err: err}
	}
	object := out.(*unstructured.Unstructured).Object
	keepApart(k, sub, object, live)
	places := make([]int64, entries)
	for i := range places {
		places[i] = int64(i)
	}
	c, times := contentOf(object, places, justNow)
	for i, at := range times {
		if at >= oldest {
			times[i] = justNow // by the clock of the field manager
		}
	}
	return &merged{content: unique.Make(c), times: times, object: object}
}

// update updates the field ownership of an object after a replacement.
func (m *merger) update(k *kind, sub string, before, after map[string]any, manager string) (map[string]any, error) {
	fields, err := m.fields(k, sub)
	if err != nil {
		return nil, err
	}
	live := runtime.DeepCopyJSON(before)
	keepApart(k, sub, after, live)
	out, err := fields.Update(&unstructured.Unstructured{Object: live}, &unstructured.Unstructured{Object: after}, manager)
	if err != nil {
		return nil, err
	}
	return out.(*unstructured.Unstructured).Object, nil
}

// keepApart ignores changes of the status in a write of the rest of the object, and the reverse.
func keepApart(k *kind, sub string, after, live map[string]any) {
	switch {
	case sub == "status":
		for name := range after {
			if name != "status" && name != "metadata" && name != "apiVersion" && name != "kind" {
				delete(after, name)
			}
		}
		for name, value := range live {
			if name != "status" && name != "metadata" {
				after[name] = value
			}
		}
	case !k.status:
	case live["status"] == nil && k.custom:
		delete(after, "status")
	case live["status"] == nil:
		after["status"] = map[string]any{} // objects of built-in kinds always have one
	default:
		after["status"] = live["status"]
	}
}

// fields returns the field manager of a kind.
func (m *merger) fields(k *kind, sub string) (*managedfields.FieldManager, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := managerKey{k.GroupVersionKind, sub}
	if made := m.managers[key]; made != nil {
		return made, nil
	}
	build, types := managedfields.NewDefaultFieldManager, m.builtIn
	if k == definition || !scheme.Scheme.Recognizes(k.GroupVersionKind) { // client-go has no types of definitions, which other packages add to the scheme
		custom, err := open(k)
		if err != nil {
			return nil, err
		}
		build, types = managedfields.NewDefaultCRDFieldManager, custom
	}
	made, err := build(types, unconverted{}, unconverted{}, unconverted{}, k.GroupVersionKind, k.GroupVersion(), sub, resets(k, sub))
	if err == nil {
		m.managers[key] = made
	}
	return made, err
}

// shared is the merger of all that use FieldManager: to read the types takes long.
var shared = sync.OnceValue(newMerger)

// FieldManager returns what tracks the ownership of the fields of a built-in kind, as clusters do it,
// for tests that keep the objects themselves. It may be used concurrently.
func FieldManager(gvk schema.GroupVersionKind) (*managedfields.FieldManager, error) {
	i := slices.IndexFunc(builtIn, func(k *kind) bool { return k.GroupVersionKind == gvk })
	if i < 0 {
		return nil, fmt.Errorf("%s is no built-in kind", gvk)
	}
	return shared().fields(builtIn[i], "")
}

// resets are the fields that a write does not affect: the status, or everything else.
func resets(k *kind, sub string) map[fieldpath.APIVersion]fieldpath.Filter {
	var paths []fieldpath.Path
	switch {
	case sub == "status":
		paths = []fieldpath.Path{fieldpath.MakePathOrDie("spec"), fieldpath.MakePathOrDie("data"), fieldpath.MakePathOrDie("metadata", "labels"), fieldpath.MakePathOrDie("metadata", "annotations")}
	case k.status:
		paths = []fieldpath.Path{fieldpath.MakePathOrDie("status")}
	default:
		return nil
	}
	return map[fieldpath.APIVersion]fieldpath.Filter{
		fieldpath.APIVersion(k.GroupVersion().String()): fieldpath.NewExcludeSetFilter(fieldpath.NewSet(paths...)),
	}
}

// unconverted is a converter for kinds that have one version and no defaults.
type unconverted struct{}

func (unconverted) Convert(in, out, context any) error { return fmt.Errorf("one version only") }

func (unconverted) ConvertToVersion(in runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	return in, nil
}

func (unconverted) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}

func (unconverted) Default(runtime.Object) {}

func (unconverted) New(k schema.GroupVersionKind) (runtime.Object, error) {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(k)
	return o, nil
}

func empty(k *kind, namespace, name string) map[string]any {
	meta := map[string]any{"name": name}
	if namespace != "" {
		meta["namespace"] = namespace
	}
	return map[string]any{"apiVersion": k.GroupVersion().String(), "kind": k.Kind, "metadata": meta}
}

// decode parses YAML or JSON.
func decode(text []byte) (*unstructured.Unstructured, error) {
	raw, err := yaml.YAMLToJSON(text)
	o := map[string]any{}
	if err == nil {
		err = json.Unmarshal(raw, &o)
	}
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding: %v", err))
	}
	return &unstructured.Unstructured{Object: o}, nil
}

// fits returns an error unless an object has the kind, name and namespace of the request.
func fits(k *kind, o *unstructured.Unstructured, namespace, name string) error {
	switch {
	case o.GroupVersionKind() != k.GroupVersionKind && (o.GetAPIVersion() != "" || o.GetKind() != ""):
		return apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s", o.GetKind(), o.GroupVersionKind().Version, k.Kind))
	case name != "" && o.GetName() != "" && o.GetName() != name:
		return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", o.GetName(), name))
	case o.GetNamespace() != "" && k.namespaced && o.GetNamespace() != namespace:
		return apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on the request")
	}
	return nil
}

// at returns the times of the entries of managedFields.
func (m *merged) at(before *object, now int64) []int64 {
	out := slices.Clone(m.times)
	for i, place := range out {
		if place == justNow {
			out[i] = now
		} else {
			out[i] = before.times[place]
		}
	}
	return out
}
