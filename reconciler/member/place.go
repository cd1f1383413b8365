package member

import (
	"context"
	"sync"
	"time"
)

// lateAnswer is how long a write keeps its slot of a common limit. A cluster that does not
// answer must not keep the slots from all others.
const lateAnswer = time.Second

// takePlace acquires a slot of a common limit, and returns the function that releases it.
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
