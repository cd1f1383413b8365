package simulated

import (
	"fmt"
	"k8s.io/apimachinery/pkg/util/json"
	"strconv"
	"time"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// A content is the part of an object that is equal on all clusters with equal objects, which
// share it in memory. It is JSON: the metadata without the fields that the server sets for each
// object, and everything else.
type content struct{ meta, body string }

// An object is one object at one version. It is immutable.
type object struct {
	kind            *kind
	namespace, name string
	uid             types.UID
	version         uint64
	generation      int64
	created         int64 // seconds
	deleting        int64 // since when, or zero
	times           []int64
	content         unique.Handle[content]
}

// own are the metadata fields that are stored outside the content.
var own = []string{"name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"}

// The times in the managedFields of a content are replaced by indexes into times, so that equal
// objects that were written at different times have equal contents. No real entry is that old.
const oldest = 1 << 20

// contentOf splits a written object. times are those of the object before; now is the time of
// entries of managedFields that have none of them.
func contentOf(o map[string]any, times []int64, now int64) (content, []int64) {
	meta, _ := o["metadata"].(map[string]any)
	kept := map[string]any{}
	for name, value := range meta {
		kept[name] = value
	}
	for _, name := range own {
		delete(kept, name)
	}
	entries, _ := kept["managedFields"].([]any)
	next := make([]int64, len(entries))
	coded := make([]any, len(entries))
	for i, e := range entries {
		entry, _ := e.(map[string]any)
		next[i] = timeOf(entry, times, now)
		with := map[string]any{}
		for name, value := range entry {
			with[name] = value
		}
		with["time"] = code(i)
		coded[i] = with
	}
	if delete(kept, "managedFields"); len(coded) > 0 {
		kept["managedFields"] = coded
	}
	body := map[string]any{}
	for name, value := range o {
		if name != "metadata" && name != "apiVersion" && name != "kind" {
			body[name] = value
		}
	}
	return content{meta: marshal(kept), body: marshal(body)}, next
}

func code(i int) string { return time.Unix(int64(i), 0).UTC().Format(time.RFC3339) }

// timeOf returns the time of an entry of managedFields: one of the times before, its own, or
// now.
func timeOf(entry map[string]any, times []int64, now int64) int64 {
	text, _ := entry["time"].(string)
	at, err := time.Parse(time.RFC3339, text)
	switch {
	case err != nil:
		return now
	case at.Unix() < int64(len(times)):
		return times[at.Unix()]
	case at.Unix() < oldest:
		return now
	}
	return at.Unix()
}

// coded returns the whole object for a merge, with indexes in place of the times.
func (o *object) coded() map[string]any {
	c := o.content.Value()
	out := map[string]any{}
	unmarshal(c.body, &out)
	out["apiVersion"], out["kind"] = o.kind.GroupVersion().String(), o.kind.Kind
	out["metadata"] = o.metadata(false)
	return out
}

// whole returns the object as clients read it.
func (o *object) whole() map[string]any {
	out := o.coded()
	out["metadata"] = o.metadata(true)
	return out
}

// partial returns only its metadata.
func (o *object) partial() map[string]any {
	return map[string]any{"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": o.metadata(true)}
}

func (o *object) metadata(timed bool) map[string]any {
	meta := map[string]any{}
	unmarshal(o.content.Value().meta, &meta)
	meta["name"], meta["uid"] = o.name, string(o.uid)
	meta["creationTimestamp"] = rfc3339(o.created)
	if o.version != 0 { // it was written
		meta["resourceVersion"] = strconv.FormatUint(o.version, 10)
	}
	if o.namespace != "" {
		meta["namespace"] = o.namespace
	}
	if o.generation != 0 {
		meta["generation"] = o.generation
	}
	if o.deleting != 0 {
		meta["deletionTimestamp"], meta["deletionGracePeriodSeconds"] = rfc3339(o.deleting), int64(0)
	}
	if entries, _ := meta["managedFields"].([]any); timed {
		for i, e := range entries {
			e.(map[string]any)["time"] = rfc3339(o.times[i])
		}
	}
	return meta
}

// labels returns the labels, for selectors.
func (o *object) labels() labels.Set {
	var meta struct {
		Labels map[string]string `json:"labels"`
	}
	unmarshal(o.content.Value().meta, &meta)
	return meta.Labels
}

func (o *object) finalizers() []string {
	var meta struct {
		Finalizers []string `json:"finalizers"`
	}
	unmarshal(o.content.Value().meta, &meta)
	return meta.Finalizers
}

func rfc3339(seconds int64) string { return time.Unix(seconds, 0).UTC().Format(time.RFC3339) }

// same reports whether two objects are equal except for their versions.
func (o *object) same(p *object) bool {
	return o.content == p.content && o.generation == p.generation && o.deleting == p.deleting && o.uid == p.uid
}

// details returns the details of the object in a Status.
func (o *object) details() *metav1.StatusDetails {
	return &metav1.StatusDetails{Name: o.name, Group: o.kind.Group, Kind: o.kind.plural, UID: o.uid}
}

func marshal(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("simulated: %v", err)) // it came from JSON
	}
	return string(text)
}

func unmarshal(text string, into any) {
	if err := json.Unmarshal([]byte(text), into); err != nil {
		panic(fmt.Sprintf("simulated: %v", err)) // we have written it
	}
}
