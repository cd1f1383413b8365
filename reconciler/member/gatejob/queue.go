package gatejob

import (
	"context"
	"errors"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gitfleet/gitfleet/reconciler/member/connection"
)

// A Queue hands Jobs over to the agent of a cluster, and knows in which namespaces they are.
type Queue struct {
	// Requests is what the agent receives from.
	Requests chan Request
	// needed is when a Job was last asked for in a namespace. Only the agent's goroutine uses it.
	needed map[string]time.Time
}

// NewQueue returns an empty queue.
func NewQueue() *Queue { return &Queue{make(chan Request), map[string]time.Time{}} }

// A Request is a Job that somebody waits for.
type Request struct {
	ctx    context.Context // of the one who waits
	want   *unstructured.Unstructured
	result chan result // has room for one
}

type result struct {
	live *unstructured.Unstructured
	err  error
}

// Run returns a Job as it is on the cluster, and creates it if it does not exist. If another Job has its name, or the agent has no time
// for it before ctx is done, the error says so. Any goroutine may call it.
func (q *Queue) Run(ctx context.Context, want *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	r := Request{ctx, want, make(chan result, 1)}
	select {
	case q.Requests <- r:
	case <-ctx.Done():
		return nil, errors.New("it is not connected, or is busy with other changes")
	}
	select {
	case got := <-r.result:
		return got.live, got.err
	case <-ctx.Done():
		return nil, errors.New("it has not answered in time")
	}
}

// Handle runs the Job of a request over a connection, as long as somebody waits for it.
func (q *Queue) Handle(ctx context.Context, conn *connection.Conn, r Request) {
	if r.ctx.Err() != nil {
		r.Refuse("it was handled too late")
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(r.ctx, cancel)()
	q.Need(r.want.GetNamespace())
	live, err := run(ctx, conn, r.want)
	r.result <- result{live, err}
}

// Refuse answers a request without running its Job.
func (r Request) Refuse(why string) { r.result <- result{err: errors.New(why)} }

// neededFor is for how long after a Job was asked for the permissions for it are needed.
const neededFor = 10 * time.Minute

// Need records that Jobs run in a namespace.
func (q *Queue) Need(namespace string) { q.needed[namespace] = time.Now() }

// Namespaces returns the namespaces in which Jobs were requested lately, and when. The caller does not change it.
func (q *Queue) Namespaces() map[string]time.Time {
	maps.DeleteFunc(q.needed, func(_ string, at time.Time) bool { return time.Since(at) > neededFor })
	return q.needed
}
