package simulation

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

// In some scenarios commits remove parts of objects, which others have changed or applied as well.

const invariantRemoved = "what Git removed is gone or named"

// removalsShare is the share of scenarios in which commits remove parts of objects, and objects with finalizers: one of so
// many.
const removalsShare = 16

// removalStep is the kind of steps with such a commit.
const removalStep = 30

// deploymentNamespace is the namespace of Deployments. Only scenarios with removals have it.
const deploymentNamespace = "yard"

// reportedName is the name of the objects whose drift is reported, and left as it is.
const reportedName = "two"

var deploymentKind = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}

var imagePath = []string{"spec", "template", "spec", "containers", "main", "image"}

// deployment returns the manifest of a Deployment. Its value is the image.
func deployment(name, value string) string {
	return fmt.Sprintf("{apiVersion: apps/v1, kind: Deployment, metadata: {name: %s, namespace: %s}, spec: {selector: {matchLabels: {app: %[1]s}}, "+
		"template: {metadata: {labels: {app: %[1]s}}, spec: {containers: [{name: main, image: %[3]s}]}}}}\n", name, deploymentNamespace, value)
}

// deploymentOverride returns the override of such an object.
func deploymentOverride(name string, o override) string {
	return fmt.Sprintf("{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ResourceOverride, metadata: {name: %s, namespace: %s}, spec: {"+
		"resourceSelectors: [{group: apps, version: v1, kind: Deployment, name: %[1]s}], policy: {overrideRules: [{"+
		"clusterSelector: {clusterSelectorTerms: [{labelSelector: {matchLabels: {region: %[3]s}}}]}, "+
		"jsonPatchOverrides: [{op: replace, path: /spec/template/spec/containers/0/image, value: %[4]s}]}]}}}\n", name, deploymentNamespace, o.region, o.value)
}

var (
	labelPart    = part{path: []string{"metadata", "labels", "part"}, value: "git", edited: "edited", bit: 0}
	ingressParts = []part{
		labelPart,
		{path: []string{"metadata", "annotations", "part"}, value: "git", edited: "edited", bit: 1},
		{path: []string{"spec", "defaultBackend", "service"}, value: object("name", "web", "port", object("number", int64(80))), edited: object("name", "edited", "port", object("number", int64(81))), bit: 2},
		{path: []string{"spec", "defaultBackend", "resource"}, value: object("kind", "Bucket", "name", "git"), edited: object("kind", "Bucket", "name", "edited"), bit: 2, second: true},
	}
	deploymentParts = []part{
		labelPart,
		{path: []string{"spec", "template", "spec", "containers", "main", "env", "PART"}, value: object("value", "git"), edited: object("value", "edited"), bit: 1},
		{path: []string{"spec", "template", "spec", "containers", "sidecar"}, value: object("image", "git"), edited: object("image", "edited"), bit: 2},
		{path: []string{"spec", "template", "spec", "containers", "main", "livenessProbe", "httpGet"}, value: object("path", "/git", "port", int64(80)), edited: object("path", "/edited", "port", int64(80)), bit: 3},
		{path: []string{"spec", "template", "spec", "containers", "main", "livenessProbe", "exec"}, value: object("command", []any{"git"}), edited: object("command", []any{"edited"}), bit: 3, second: true},
	}
)

func object(pairs ...any) map[string]any {
	out := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		out[pairs[i].(string)] = pairs[i+1]
	}
	return out
}

// A partSet is a set of the parts of a kind, by their index.
type partSet uint16

func (s partSet) has(i int) bool { return s>>i&1 == 1 }

// partsOf returns the parts that an object has.
func partsOf(u *unstructured.Unstructured) (s partSet) {
	for i, p := range managedKinds[u.GetNamespace()].parts {
		if getPart(u.Object, p.path) != nil {
			s |= 1 << i
		}
	}
	return s
}

// partsInFields are the parts of a kind that are no items of lists.
func (k managedKind) partsInFields() (s partSet) {
	for i, p := range k.parts {
		if !p.isItem() {
			s |= 1 << i
		}
	}
	return s
}

// isAlternative reports whether a part has an alternative, which the server refuses beside it.
func (k managedKind) isAlternative(i int) bool {
	return k.parts[i].second || i+1 < len(k.parts) && k.parts[i+1].second
}

// noteApplied records the parts of an object after it was applied.
func (t *liveObject) noteApplied(content *unstructured.Unstructured) {
	t.applied, t.edited = (t.applied|partsOf(content))&partsOf(t.stored), 0
}

// release makes an object one that gitfleet has never applied. No other applier has an alternative in it, which would
// have a takeover refused.
func (t *liveObject) release() {
	t.ours = false
	if t.stored == nil {
		return
	}
	t.stored = t.stored.DeepCopy()
	t.stored.SetManagedFields(slices.DeleteFunc(t.stored.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == api.FieldManager || e.Manager == otherApplier
	}))
	t.managed, t.left, t.applied, t.edited = "", "", 0, 0
}

// drifted reports whether others have changed an object since it was applied, and that is reverted.
func (t *liveObject) drifted(m *work.Manifest) bool {
	return t.stored != nil && diff.ApplyHash(t.stored.GetManagedFields(), api.FieldManager) != t.managed && !leavesDrift(m)
}

// changeParts has others change parts of some objects on a host, or apply some.
func (a *agent) changeParts() {
	if !a.d.w.removals {
		return
	}
	for _, id := range slices.SortedFunc(maps.Keys(a.objects), api.ID.Compare) {
		t := a.objects[id]
		if t.stored == nil || a.others.IntN(3) > 0 {
			continue
		}
		i := a.others.IntN(len(managedKinds[id.Namespace].parts))
		if a.others.IntN(2) == 0 {
			a.editPart(t, i)
		} else {
			a.applyParts(t)
		}
	}
}

// editPart changes a part of an object, if it has that.
func (a *agent) editPart(t *liveObject, i int) {
	p := managedKinds[t.stored.GetNamespace()].parts[i]
	if !partsOf(t.stored).has(i) {
		return
	}
	next := t.stored.DeepCopy()
	putPart(next.Object, p.path, p.edited)
	out, err := a.d.w.fieldManager(t.stored.GroupVersionKind()).Update(t.stored.DeepCopy(), next, "kubectl-edit")
	if err != nil {
		a.d.w.t.Error(err)
		return
	}
	t.stored = out.(*unstructured.Unstructured)
	t.edited |= 1 << i
	a.d.w.logf("somebody edits %s of %s on cluster %s", strings.Join(p.path, "."), title(api.IDOf(t.stored)), a.name)
}

const otherApplier = "flux"

// applyParts has another server-side applier apply some parts of an object, instead of those that it has applied before.
func (a *agent) applyParts(t *liveObject) {
	sent := &unstructured.Unstructured{Object: object("apiVersion", t.stored.GetAPIVersion(), "kind", t.stored.GetKind(),
		"metadata", object("name", t.stored.GetName(), "namespace", t.stored.GetNamespace()))}
	var edited partSet
	var said []string
	kind := managedKinds[t.stored.GetNamespace()]
	for i, p := range kind.parts {
		switch n := a.others.IntN(6); {
		case n < 3 || kind.isAlternative(i) && (!t.ours || t.stored.GetName() == reportedName):
			// What gitfleet takes over, or leaves drift in, is refused as long as the other applier has another alternative.
			continue
		case n == 5 && !kind.isAlternative(i): // the server would refuse another one until they give it up
			putPart(sent.Object, p.path, p.edited)
			edited |= 1 << i
		default:
			putPart(sent.Object, p.path, p.value)
		}
		said = append(said, strings.Join(p.path, "."))
	}
	out, err := a.d.w.applyAs(otherApplier, sent, t.stored)
	if err != nil {
		return // the server refuses it
	}
	t.stored = out
	t.edited |= edited
	t.applied &= partsOf(t.stored)
	a.d.w.logf("flux applies %v of %s on cluster %s", said, title(api.IDOf(t.stored)), a.name)
}

// pointer returns the JSON pointer to a part of an object.
func (p part) pointer(u *unstructured.Unstructured) string {
	var b strings.Builder
	var at any = u.Object
	for _, key := range p.path {
		if items, isList := at.([]any); isList {
			i := slices.IndexFunc(items, func(item any) bool { return item.(map[string]any)["name"] == key })
			at, key = items[i], strconv.Itoa(i)
		} else {
			at = at.(map[string]any)[key]
		}
		b.WriteString("/" + key)
	}
	return b.String()
}

// stays returns the state of an applied object that still has what Git has removed; false if it does not.
func (t *liveObject) stays(m *work.Manifest) (s protocol.ObjectState, stays bool) {
	left := t.left
	if left != "" {
		left = left.In(t.stored, m.Object.Content)
	}
	if left == "" {
		return s, false
	}
	s.Applied = protocol.Verdict{OK: true, Reason: api.ManifestApplied, Cause: "applied, but what Git has removed is still there"}
	s.Diffs, s.Drift, s.FirstSeen, s.LastSeen = left.Differences(t.stored, api.FieldManager), true, t.since, t.since
	return s, true
}

// checkRemoved checks, after everything has settled, that no part is there that gitfleet has applied and that the newest
// content does not have, unless the report names it.
func (w *world) checkRemoved() {
	for _, name := range keys(w.hosts) {
		h := w.hosts[name]
		for _, id := range slices.SortedFunc(maps.Keys(h.objects), api.ID.Compare) {
			t := h.objects[id]
			if a := w.agentsOf(h); t.stored == nil || !t.ours || len(a) != 1 || a[0].lastApplied[id] == nil {
				continue
			}
			wanted := partsOf(w.agentsOf(h)[0].lastApplied[id].Object.Content)
			for i, p := range managedKinds[id.Namespace].parts {
				if stays := t.applied & partsOf(t.stored) &^ wanted; stays.has(i) && !w.reportNames(name, t, p) {
					w.violate(invariantRemoved, "%s on %s still has %s, and the report does not say so", title(id), name, strings.Join(p.path, "."))
				}
			}
		}
	}
}

// reportNames reports whether the last report names a part of an object on a cluster.
func (w *world) reportNames(cluster string, t *liveObject, p part) bool {
	for _, placed := range w.report.Placements {
		for _, on := range placed.Status.PlacementStatuses {
			for _, d := range on.DriftedPlacements {
				if on.ClusterName == cluster && placed.Name == t.by.Name && d.Kind == t.stored.GetKind() && d.Name == t.stored.GetName() &&
					slices.ContainsFunc(d.ObservedDrifts, func(o api.PatchDetail) bool { return p.isNamed(t.stored, o) }) {
					return true
				}
			}
		}
	}
	return false
}

// isNamed reports whether a difference is that of a part. A list item that is too much is named by its value.
func (p part) isNamed(u *unstructured.Unstructured, o api.PatchDetail) bool {
	pointer := p.pointer(u)
	if list, isNew := strings.CutSuffix(o.Path, "/-"); isNew && p.isItem() && list == pointer[:strings.LastIndexByte(pointer, '/')] {
		return strings.Contains(o.ValueInMember, "name:"+p.path[len(p.path)-1])
	}
	return o.Path == pointer || strings.HasPrefix(pointer, o.Path+"/") || strings.HasPrefix(o.Path, pointer+"/")
}

// addRemovals gives a first commit the objects of which parts are removed, and those that have finalizers.
func (d *desired) addRemovals() {
	d.parts = true
	for i, space := range []string{ingressNamespace, deploymentNamespace} {
		d.configMaps[space] = map[string]string{"one": fmt.Sprintf("good-%d", i), reportedName: fmt.Sprintf("good-%d", i+2)}
	}
	p := d.placements[placementNames[0]]
	p.namespaces = []string{controllerID.Namespace, ingressNamespace, deploymentNamespace}
	p.reportDiff = false
	d.placements[placementNames[0]] = p
}

// changeRemovals pushes a commit that changes which parts objects have, or that removes objects with finalizers and
// what executes them.
func (w *world) changeRemovals(r *rand.Rand) {
	w.runEvent(func() {
		d := w.newestValid().clone()
		said := "objects get other parts"
		switch n := r.IntN(6); {
		case n == 0 && len(d.placements) > 1 && d.has(placementNames[0]):
			delete(d.placements, placementNames[0])
			said = "the placement of the controller goes"
		case n == 1 && d.configMaps[ingressNamespace] != nil:
			delete(d.configMaps[controllerID.Namespace], controllerID.Name)
			delete(d.configMaps, ingressNamespace)
			for id := range d.overrides {
				if id == controllerID || id.Namespace == ingressNamespace {
					delete(d.overrides, id)
				}
			}
			said = "the controller goes, and what it serves"
		case !d.has(placementNames[0]) || d.configMaps[ingressNamespace] == nil:
			again := &desired{configMaps: map[string]map[string]string{}, placements: map[string]placementSpec{placementNames[0]: d.newPlacement(r)}}
			again.addRemovals()
			maps.Copy(d.configMaps, again.configMaps)
			maps.Copy(d.placements, again.placements)
			if d.configMaps[controllerID.Namespace] == nil {
				d.configMaps[controllerID.Namespace] = map[string]string{}
			}
			d.configMaps[controllerID.Namespace][controllerID.Name] = good + "-0"
			said = "the controller comes, and what it serves"
		default:
			for _, space := range keys(managedKinds) {
				for _, name := range keys(d.configMaps[space]) {
					d.configMaps[space][name] = fmt.Sprintf("%s-%d", pick(r, []string{good, good, slow, loose}), r.IntN(40))
				}
			}
		}
		w.push(said, d)
	})
}

func (d *desired) has(placement string) bool {
	_, has := d.placements[placement]
	return has
}
