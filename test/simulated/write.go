package simulated

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strconv"
	"unique"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// The lock must be held for everything here. With dry nothing is kept.

// create creates an object.
func (c *Cluster) create(k *kind, namespace string, o map[string]any, manager string, dry bool) (*object, error) {
	u := &unstructured.Unstructured{Object: o}
	if err := fits(k, u, namespace, ""); err != nil {
		return nil, err
	}
	if u.GetName() == "" && u.GetGenerateName() != "" {
		u.SetName(u.GetGenerateName() + suffix())
	}
	if u.GetName() == "" {
		return nil, apierrors.NewBadRequest("the name of the object is missing")
	}
	if u.GetResourceVersion() != "" {
		return nil, apierrors.NewBadRequest("resourceVersion should not be set on objects to be created")
	}
	if c.find(k, namespace, u.GetName()) != nil {
		return nil, apierrors.NewAlreadyExists(k.resource(), u.GetName())
	}
	if err := c.welcomes(k, namespace); err != nil {
		return nil, err
	}
	for _, field := range own {
		if field != "name" {
			unstructured.RemoveNestedField(o, "metadata", field)
		}
	}
	u.SetNamespace(namespace)
	u.SetGroupVersionKind(k.GroupVersionKind)
	if k == namespaceKind {
		label(u)
	}
	o, err := c.fleet.merger.update(k, "", empty(k, namespace, u.GetName()), o, manager)
	if err != nil {
		return nil, err
	}
	given(k, o)
	now := c.now()
	kept, times := contentOf(o, nil, now)
	return c.born(k, namespace, u.GetName(), unique.Make(kept), times, dry), nil
}

// born stores a new object.
func (c *Cluster) born(k *kind, namespace, name string, kept unique.Handle[content], times []int64, dry bool) *object {
	o := &object{kind: k, namespace: namespace, name: name, uid: newUID(), created: c.now(), times: times, content: kept}
	if k.counted {
		o.generation = 1
	}
	if !dry {
		c.put(nil, o)
		return c.settle(o)
	}
	return o
}

// given sets the fields of a new object that only the server sets.
func given(k *kind, o map[string]any) {
	if k != namespaceKind {
		return
	}
	label(&unstructured.Unstructured{Object: o})
	o["spec"] = map[string]any{"finalizers": []any{"kubernetes"}}
	o["status"] = map[string]any{"phase": "Active"}
}

// label adds the label with the name of a namespace.
func label(u *unstructured.Unstructured) {
	labels := u.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels["kubernetes.io/metadata.name"] = u.GetName()
	u.SetLabels(labels)
}

// welcomes returns an error if no object can be created in a namespace.
func (c *Cluster) welcomes(k *kind, namespace string) error {
	if !k.namespaced || c.objects[namespaceKind.resource()][key{"", namespace}] != nil {
		return nil
	}
	return apierrors.NewNotFound(namespaceKind.resource(), namespace)
}

// suffix returns the random end of a generated name.
func suffix() string {
	const letters = "bcdfghjklmnpqrstvwxz2456789"
	var out [5]byte
	for i := range out {
		out[i] = letters[rand.IntN(len(letters))]
	}
	return string(out[:])
}

// replace replaces a whole object, or its status.
func (c *Cluster) replace(k *kind, sub string, before *object, o map[string]any, manager string, dry bool) (*object, error) {
	u := &unstructured.Unstructured{Object: o}
	if err := fits(k, u, before.namespace, before.name); err != nil {
		return nil, err
	}
	if err := c.checkPreconditions(before, u.GetResourceVersion(), u.GetUID()); err != nil {
		return nil, err
	}
	u.SetNamespace(before.namespace)
	u.SetName(before.name)
	u.SetGroupVersionKind(k.GroupVersionKind)
	for _, field := range own {
		if field != "name" && field != "namespace" {
			unstructured.RemoveNestedField(o, "metadata", field)
		}
	}
	live := before.coded()
	if sub != "" {
		unstructured.RemoveNestedField(o, "metadata")
		o["metadata"] = live["metadata"]
	}
	o, err := c.fleet.merger.update(k, sub, live, o, manager)
	if err != nil {
		return nil, err
	}
	kept, times := contentOf(o, before.times, c.now())
	return c.change(before, unique.Make(kept), times, dry), nil
}

// checkPreconditions returns an error if an object does not meet the preconditions.
func (c *Cluster) checkPreconditions(o *object, version string, uid types.UID) error {
	if uid != "" && uid != o.uid {
		//lint:ignore ST1005 the words are a real API server's
		return apierrors.NewConflict(o.kind.resource(), o.name, fmt.Errorf("Precondition failed: UID in precondition: %v, UID in object meta: %v", uid, o.uid))
	}
	if version != "" && version != strconv.FormatUint(o.version, 10) {
		return apierrors.NewConflict(o.kind.resource(), o.name, fmt.Errorf("the object has been modified; please apply your changes to the latest version and try again"))
	}
	return nil
}

// change stores new content of an object, if it differs.
func (c *Cluster) change(before *object, kept unique.Handle[content], times []int64, dry bool) *object {
	after := *before
	after.content, after.times = kept, times
	if before.kind.counted && desired(before) != desired(&after) {
		after.generation++
	}
	if after.same(before) {
		return before
	}
	if after.deleting != 0 && len(after.finalizers()) == 0 {
		if !dry {
			c.put(before, nil)
		}
		return &after
	}
	if dry {
		return &after
	}
	c.put(before, &after)
	return c.settle(&after)
}

// desired returns the part of an object whose changes the generation counts.
func desired(o *object) string {
	body := map[string]any{}
	unmarshal(o.content.Value().body, &body)
	delete(body, "status")
	return marshal(body)
}

// apply applies a patch by server-side apply.
func (c *Cluster) apply(k *kind, sub, namespace, name string, patch []byte, manager string, force, dry bool) (o *object, created bool, err error) {
	before := c.find(k, namespace, name)
	if before == nil && sub != "" {
		return nil, false, apierrors.NewNotFound(k.resource(), name)
	}
	if before != nil && bytes.Contains(patch, []byte("resourceVersion")) {
		sent, err := decode(patch)
		if err != nil {
			return nil, false, err
		}
		if err := c.checkPreconditions(before, sent.GetResourceVersion(), ""); err != nil {
			return nil, false, err
		}
	}
	done := c.fleet.merger.apply(k, sub, namespace, name, before, patch, manager, force)
	if done.err != nil {
		return nil, false, done.err
	}
	if before != nil {
		return c.change(before, done.content, done.at(before, c.now()), dry), false, nil
	}
	if err := c.welcomes(k, namespace); err != nil {
		return nil, false, err
	}
	kept := done.content
	if k == namespaceKind {
		o := (&object{kind: k, name: name, content: kept}).coded()
		given(k, o)
		whole, _ := contentOf(o, make([]int64, len(done.times)), 0)
		kept = unique.Make(whole)
	}
	return c.born(k, namespace, name, kept, done.at(nil, c.now()), dry), true, nil
}

// remove deletes an object, or sets its deletion timestamp if it has finalizers.
func (c *Cluster) remove(before *object, opts metav1.DeleteOptions) (*object, error) {
	var uid types.UID
	version := ""
	if p := opts.Preconditions; p != nil {
		if p.UID != nil {
			uid = *p.UID
		}
		if p.ResourceVersion != nil {
			version = *p.ResourceVersion
		}
	}
	what := schema.GroupResource{Group: before.kind.Group, Resource: before.kind.Kind} // as in the message of a real server
	if uid != "" && uid != before.uid {
		return nil, apierrors.NewConflict(what, before.name, fmt.Errorf("the UID in the precondition (%s) does not match the UID in record (%s). The object might have been deleted and then recreated", uid, before.uid))
	}
	if version != "" && version != strconv.FormatUint(before.version, 10) {
		return nil, apierrors.NewConflict(what, before.name, fmt.Errorf("the ResourceVersion in the precondition (%s) does not match the ResourceVersion in record (%d). The object might have been modified", version, before.version))
	}
	if len(opts.DryRun) > 0 {
		return nil, nil
	}
	if len(before.finalizers()) > 0 {
		if before.deleting != 0 {
			return before, nil
		}
		after := *before
		after.deleting = c.now()
		if before.kind.counted {
			after.generation++
		}
		c.put(before, &after)
		return &after, nil
	}
	if before.kind == namespaceKind {
		c.clear(before.name)
	}
	c.put(before, nil)
	return nil, nil
}

// clear deletes the objects of a namespace, as the controllers of a real cluster do.
func (c *Cluster) clear(namespace string) {
	for _, k := range c.kinds() {
		if k.namespaced {
			for _, o := range c.list(k, namespace) {
				c.put(o, nil)
			}
		}
	}
}

func (c *Cluster) now() int64 { return c.fleet.options.Now().Unix() }
