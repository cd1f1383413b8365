package member

import (
	"context"
	"sync"
	"time"
)

// lateAnswer is how long a request keeps its place under the common bound: a
// cluster that does not answer must not take the places of all others.
const lateAnswer = time.Second

// place takes a place under the common bound, and returns how to give it back.
func (a *Agent) place(ctx context.Context) func() {
	if a.cfg.Limit == nil {
		return func() {}
	}
	select {
	case a.cfg.Limit <- struct{}{}:
	case <-ctx.Done():
		return func() {}
	}
	free := sync.OnceFunc(func() { <-a.cfg.Limit })
	late := time.AfterFunc(lateAnswer, free)
	return func() {
		late.Stop()
		free()
	}
}
