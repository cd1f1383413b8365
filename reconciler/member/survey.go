package member

import (
	"context"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement/api"
)

// A finding is what is known of an object before it is first applied.
type finding struct {
	// meta is the object's metadata; nil if it is not there.
	meta *metav1.PartialObjectMetadata
}

// A place is where objects are listed together.
type place struct {
	res       resource
	namespace string
}

// survey finds out which of the objects that were never applied are there
// already: what is, may belong to somebody, and what is not costs no further
// look. Where there are several of a kind, one list answers for all.
func (s *session) survey(ctx context.Context, tasks []task) {
	places := map[place][]*task{}
	for i := range tasks {
		t := &tasks[i]
		if t.item != nil && t.item.Hash == "" {
			at := place{t.res, t.manifest.ID.Namespace}
			places[at] = append(places[at], t)
		}
	}
	slots := make(chan struct{}, s.cfg.Concurrency)
	var wg sync.WaitGroup
	for at, tasks := range places {
		if len(tasks) == 1 {
			continue // reading it costs no more
		}
		slots <- struct{}{}
		wg.Add(1)
		go func() {
			defer func() { <-slots; wg.Done() }()
			defer s.place(ctx)()
			s.surveyPlace(ctx, at, tasks)
		}()
	}
	wg.Wait()
}

// surveyPlace looks for the objects of some tasks in one place. Where there is
// much more than they are, or the list is refused, each is read by itself.
func (s *session) surveyPlace(ctx context.Context, at place, tasks []*task) {
	const limit = 500
	there := map[api.ID]*metav1.PartialObjectMetadata{}
	kind := tasks[0].manifest.ID
	opts := metav1.ListOptions{Limit: limit}
	for range 1 + len(tasks)/50 {
		page, err := s.page(ctx, at.res.GroupVersionResource, at.namespace, opts)
		if s.heard(err) != nil {
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
