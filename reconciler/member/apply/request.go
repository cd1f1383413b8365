package apply

import (
	"fmt"
	"iter"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/controllers"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/member/autoscaler"
)

// toSend returns the object to apply, in which fields that are left to others are as they were
// read, or as in the object that it replaces. It has a resourceVersion if it must not be applied to
// another version of the live object.
func (x *Executor) toSend(t Task, read Snapshot) (*unstructured.Unstructured, error) {
	pointers, err := diff.IgnoredFields(t.Manifest.Object.Content)
	if err != nil {
		return nil, err
	}
	content := diff.Normalize(t.Manifest.Object.Content)
	if old := t.Replaced; old != nil && read.Live == nil {
		return diff.Keep(content, old.Live, append(pointers, autoscaler.Paths(old.Rivals)...)), nil
	}
	return diff.Leave(content, read.Live, leftFields(t, read, pointers), api.FieldManager)
}

// leftFields returns JSON pointers to the fields that are left to others: those that the annotation lists, those that
// belong to controllers, empty values that a program has filled, and those that autoscalers of the live object set.
func leftFields(t Task, read Snapshot, ignored []string) []string {
	content := t.Manifest.Object.Content
	return slices.Concat(ignored, controllers.Pointers(content), diff.Filled(content, read.Live), autoscaler.Paths(read.Rivals))
}

// body returns the bytes to apply an object as it was read, and whether they are for one version of it. Clusters that
// get the same manifest share them if nothing of what was read is in them.
func (x *Executor) body(t Task, read Snapshot, commit string) (raw []byte, ofVersion bool, err error) {
	key, shared := encodingKey{t.Manifest.ID, t.Manifest.Hash, t.Manifest.Origin.Path, commit, t.Placement}, read.Live == nil && t.Replaced == nil && t.Manifest.Hash != ""
	if shared {
		if raw = x.Encoder.recent.of(key); raw != nil {
			return raw, false, nil
		}
	}
	o, err := x.toSend(t, read)
	if err != nil {
		return nil, false, err
	}
	raw, err = x.Encoder.encodeAs(o, t.Manifest, t.Placement, commit)
	if ofVersion = o.GetResourceVersion() != ""; shared && err == nil && !ofVersion {
		x.Encoder.recent.add(key, raw)
	}
	return raw, ofVersion, err
}

// DryRunBody returns the body of the request for a dry run. It needs no resourceVersion, since
// nothing is stored.
func (x *Executor) DryRunBody(t Task, read Snapshot) ([]byte, error) {
	o, err := x.toSend(t, read)
	if err != nil {
		return nil, err
	}
	if o.GetResourceVersion() != "" {
		o.SetResourceVersion("") // a copy, as it has live values
	}
	return x.Encoder.encodeAs(o, t.Manifest, t.Placement, "")
}

// CreationBody returns the body of the request for a dry run that creates the object under another
// name, while the live one is still there.
func (x *Executor) CreationBody(t Task, read Snapshot, live *unstructured.Unstructured) ([]byte, error) {
	body, err := x.DryRunBody(t, read)
	if err != nil || t.Manifest.ID.GroupKind() != (api.GroupKind{Kind: "Service"}) {
		return body, err
	}
	return withoutAllocated(body, live)
}

// withoutAllocated returns the body of a Service without the cluster IPs and node ports of the live
// Service: they stay allocated until the live Service is deleted.
func withoutAllocated(body []byte, live *unstructured.Unstructured) ([]byte, error) {
	service := &unstructured.Unstructured{}
	if err := service.UnmarshalJSON(body); err != nil {
		return nil, err
	}
	taken := map[string]bool{}
	for fields, name := range allocations(live) {
		taken[fmt.Sprint(fields[name])] = true
	}
	delete(taken, "None") // a headless Service has no address
	for fields, name := range allocations(service) {
		if taken[fmt.Sprint(fields[name])] {
			delete(fields, name)
		}
	}
	return service.MarshalJSON()
}

// allocations yields the fields of a Service that the server allocates: the map that has the
// field, and its name.
func allocations(service *unstructured.Unstructured) iter.Seq2[map[string]any, string] {
	return func(yield func(map[string]any, string) bool) {
		spec, _ := service.Object["spec"].(map[string]any)
		for _, name := range []string{"clusterIP", "clusterIPs", "healthCheckNodePort"} {
			if !yield(spec, name) {
				return
			}
		}
		ports, _ := spec["ports"].([]any)
		for _, p := range ports {
			if port, ok := p.(map[string]any); ok && !yield(port, "nodePort") {
				return
			}
		}
	}
}

// request describes the apply of a task to a live object.
func (x *Executor) request(t Task, read Snapshot) diff.Request {
	ignored, _ := diff.IgnoredFields(t.Manifest.Object.Content) // body reports malformed ones
	var before *unstructured.Unstructured
	if t.LastApplied != nil {
		before = t.LastApplied.Object.Content
	} else if t.Item != nil && t.Item.Hash != t.Manifest.Hash && read.Live != nil {
		before = diff.Recorded(read.Live, t.Changed)
	}
	return diff.Request{
		Before: before, Desired: x.Encoder.object(diff.Normalize(t.Manifest.Object.Content), t.Manifest, t.Placement, ""), Live: read.Live, Manager: api.FieldManager,
		Ignored: leftFields(t, read, ignored), Force: diff.Force(x.Works.Of(t.Placement).Strategy),
		KeepShared: t.Rule.Mode != "" && t.Rule.Mode != api.DriftRevert,
	}
}
