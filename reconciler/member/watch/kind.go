package watch

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/controllers"
	"github.com/gitfleet/gitfleet/reconciler/health"
	"github.com/gitfleet/gitfleet/reconciler/member/availability"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/member/observed"
	"github.com/gitfleet/gitfleet/reconciler/member/retry"
)

// A Kind watches the objects of one kind that have the managed-by label, of any fleet.
type Kind struct {
	GVK schema.GroupVersionKind
	res connection.Resource
	// Full says that whole objects are watched, and not only their metadata.
	Full bool
	// expressions are the expressions of the desired objects.
	expressions *availability.Expressions

	// The following fields belong to follow. resourceVersion is where the watch resumes; empty
	// means that the next request is a list. since is the time of the last list, failed counts
	// the failures since then, and notStarted the consecutive watches that the server has not
	// started.
	resourceVersion string
	listed          uint64 // the version of the last list
	since           time.Time
	failed          retry.Backoff
	notStarted      retry.Backoff

	// mayOpen is closed once the watch may be opened. Stop ends it.
	mayOpen chan struct{}
	Stop    context.CancelFunc

	mu            sync.Mutex
	cancelRequest context.CancelCauseFunc // cancels the current request

	// retired says that events of the watch are no longer recorded, because another watch may
	// have replaced it. It is protected by the lock of Changes.
	retired bool
	// synced says that there was a complete list. refused says that listing the kind is
	// forbidden; it is retried nevertheless. unserved says that the server, which
	// has listed it, does not serve it any more.
	synced, refused, unserved atomic.Bool
}

// NewKind returns a watch that has not been started.
func NewKind(gvk schema.GroupVersionKind, res connection.Resource) *Kind {
	return &Kind{GVK: gvk, res: res, mayOpen: make(chan struct{}), Stop: func() {}, cancelRequest: func(error) {}}
}

// allowOpen lets the watch be opened after its first list. Only the goroutine of the session calls
// it.
func (k *Kind) allowOpen() {
	select {
	case <-k.mayOpen:
	default:
		close(k.mayOpen)
	}
}

// errReconnected cancels a request of a watch because the connection was replaced.
var errReconnected = errors.New("connection replaced")

// reconnect cancels the current request. The watch resumes at the same version over the new
// connection.
func (k *Kind) reconnect() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.cancelRequest(errReconnected)
}

// requestContext returns the context of the next list and watch, which reconnect cancels.
func (k *Kind) requestContext(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.cancelRequest = cancel
	return ctx, cancel
}

// Complete reports whether the watch knows every object of the kind. Otherwise an object that
// it does not know may still exist.
func (k *Kind) Complete() bool { return k != nil && k.synced.Load() }

// Refused reports whether the kind may not be listed, so that no watch reports its objects.
func (k *Kind) Refused() bool { return k != nil && k.refused.Load() && !k.Complete() }

// HealthOf returns the health of an object of a kind that may not be listed, as a request for it has shown
// it. If the object is not available, the message says why that may not be true any more.
func (k *Kind) HealthOf(o *unstructured.Unstructured) health.Health {
	h := k.health(o, k.expressions.Of(api.IDOf(o)))
	if !h.Counts() {
		about := "when gitfleet last wrote or read it; " + k.unfollowed()
		if h.Message != "" {
			about = h.Message + " " + about
		}
		h.Message, h.Failure = about, ""
	}
	return h
}

// HealthUnread returns the health of an object of a kind that may not be listed, of which nothing was read.
func (k *Kind) HealthUnread() health.Health {
	if k.Full {
		return health.Health{State: health.NotAvailableYet, Message: k.unfollowed()}
	}
	return health.OfKind(k.GVK)
}

func (k *Kind) unfollowed() string {
	return "its status cannot be followed, since gitfleet may not list and watch " + k.res.GroupResource().String()
}

// Unserved reports whether the server has answered that it does not serve the kind any more.
func (k *Kind) Unserved() bool { return k.unserved.Load() }

// selector is the label selector of the objects that are watched.
const selector = api.ManagedByLabel

// pageSize is the number of objects in a page of a list. A page is in memory as a whole, and CustomResourceDefinitions with their schemas
// are a hundred times larger than other objects.
func (k *Kind) pageSize() int64 {
	if k.Full && k.GVK.GroupKind() == (schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}) {
		return 10
	}
	return 500
}

// stateOf returns what is kept of an object, which is whole or only its metadata.
func (k *Kind) stateOf(o metav1.Object) (api.ID, *observed.Object) {
	id := api.ID{Group: k.GVK.Group, Kind: k.GVK.Kind, Namespace: o.GetNamespace(), Name: o.GetName()}
	l := observed.Watched(o, k.GVK.Group)
	l.Health = k.health(o, k.expressions.Of(id))
	l.Health.Message, l.Health.Failure = health.Cut(l.Health.Message, connection.Longest), health.Cut(l.Health.Failure, connection.Longest)
	if u, whole := o.(*unstructured.Unstructured); whole {
		l.Ended = controllers.HasEnded(u)
	}
	return id, l
}

// health returns the health of an object, by its expression if it has one.
func (k *Kind) health(o metav1.Object, expression string) health.Health {
	u, whole := o.(*unstructured.Unstructured)
	switch {
	case whole && expression != "":
		return k.expressions.Health(u, expression)
	case expression != "":
		return health.Health{State: health.NotAvailableYet, Message: "not evaluated yet"}
	case whole:
		return health.Of(u)
	default:
		return health.OfKind(k.GVK)
	}
}
