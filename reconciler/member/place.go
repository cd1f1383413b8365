package member

import (
	"context"
	"sync"
	"time"
)

// lateAnswer is how long a write keeps its slot under a common bound: a cluster that does not
// answer must not take the slots of all others.
const lateAnswer = time.Second

// takePlace takes a slot under a common bound, and returns the function that gives it back.
func takePlace(ctx context.Context, bound chan struct{}) func() {
	if bound == nil {
		return func() {}
	}
	select {
	case bound <- struct{}{}:
	case <-ctx.Done():
		return func() {}
	}
	free := sync.OnceFunc(func() { <-bound })
	late := time.AfterFunc(lateAnswer, free)
	return func() {
		late.Stop()
		free()
	}
}
