package member

import (
	"context"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
)

// A finding is the state of an object before it is first applied.
type finding struct {
	// meta is the object's metadata; nil if it does not exist.
	meta *metav1.PartialObjectMetadata
}

// A place is a collection that objects are listed in.
type place struct {
	res       connection.Resource
	namespace string
}

// survey determines which of the objects that were never applied already exist: those may
// belong to somebody, and the others need not be read again. Several objects of a kind are
// found with one list request.
func (s *session) survey(ctx context.Context, tasks []task) {
	places := map[place][]*task{}
	for i := range tasks {
		t := &tasks[i]
		switch {
		case t.item == nil || t.item.Hash != "":
		case s.cannotBeThere(t):
			t.found = &finding{}
		default:
			at := place{t.res, t.manifest.ID.Namespace}
			places[at] = append(places[at], t)
		}
	}
	slots := make(chan struct{}, s.cfg.Concurrency)
	var wg sync.WaitGroup
	for at, tasks := range places {
		if len(tasks) == 1 {
			continue // reading the object costs no more than a list
		}
		slots <- struct{}{}
		wg.Add(1)
		go func() {
			defer func() { <-slots; wg.Done() }()
			defer takePlace(ctx, s.cfg.Limit)()
			s.surveyPlace(ctx, at, tasks)
		}()
	}
	wg.Wait()
}

// cannotBeThere reports whether an object could exist only if somebody has created it within
// the last moments: a namespace that did not exist, or an object in a namespace that was just
// created. That is certain enough if everything may be taken over anyway.
func (s *session) cannotBeThere(t *task) bool {
	id := t.manifest.ID
	switch {
	case s.works[t.placement].Strategy.WhenToTakeOver != api.TakeOverAlways:
		return false
	case id.GroupKind() == schema.GroupKind{Kind: "Namespace"}:
		return s.health.Namespaces != nil && !slices.Contains(s.health.Namespaces, id.Name)
	default:
		return t.res.Namespaced && s.fresh[id.Namespace] && !systemObject(id.GroupKind(), id.Name)
	}
}

// surveyPlace looks up the objects of some tasks in one collection. If the collection is much
// larger than the number of tasks, or the list is refused, each object is read.
func (s *session) surveyPlace(ctx context.Context, at place, tasks []*task) {
	const limit = 500
	there := map[api.ID]*metav1.PartialObjectMetadata{}
	kind := tasks[0].manifest.ID
	opts := metav1.ListOptions{Limit: limit}
	for range 1 + len(tasks)/50 {
		page, err := s.conn.Page(ctx, at.res.GroupVersionResource, at.namespace, &opts)
		if s.conn.RecordResult(err) != nil {
			return
		}
		for i := range page.Items {
			o := &page.Items[i]
			there[api.ID{Group: kind.Group, Kind: kind.Kind, Namespace: o.Namespace, Name: o.Name}] = o
		}
		if opts.Continue = page.Continue; opts.Continue == "" {
			for _, t := range tasks {
				t.found = &finding{there[t.manifest.ID]}
			}
			return
		}
	}
}
