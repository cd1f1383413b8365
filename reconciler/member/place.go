package member

import (
	"context"
	"sync"
	"time"
)

// lateAnswer is how long a place is kept under a common bound: a cluster that does
// not answer must not take the places of all others.
const lateAnswer = time.Second

// takePlace takes a place under a common bound, and returns how to give it back.
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
