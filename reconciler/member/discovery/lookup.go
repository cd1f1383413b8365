package discovery

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/reconciler/member/retry"
)

// A lookup schedules the requests for a kind that the server did not serve.
type lookup struct {
	failures retry.Backoff
	next     time.Time
	// established is when a definition of the group was established; zero if that has not
	// happened since the first lookup.
	established time.Time
	// versions are other versions in which the server serves the kind.
	versions []string
}

const (
	firstLookup = 100 * time.Millisecond // definitions are often created together with their objects
	// LastLookup is the maximum time between two lookups.
	LastLookup = 5 * time.Minute
	// Discovery may lag behind a definition that was just established. For some time, lookups
	// are at most this far apart.
	EstablishedLookup = 5 * time.Second
	establishedFor    = time.Minute
)

// failed schedules the next lookup after one that found nothing.
func (l *lookup) failed(now time.Time) {
	last := LastLookup
	if now.Sub(l.established) < establishedFor {
		last = EstablishedLookup
	}
	l.next = now.Add(l.failures.Next(firstLookup, last))
}

// NextLookup returns when a kind that the server did not serve is requested again; zero for any
// other kind.
func (k *Kinds) NextLookup(gvk schema.GroupVersionKind) time.Time { return k.lookups[gvk].next }

// lookedUp schedules the next lookups of kinds that are still unknown, in the group versions
// that were requested.
func (k *Kinds) lookedUp(wanted map[schema.GroupVersionKind]bool, asked map[schema.GroupVersion]bool) {
	now := time.Now()
	for gvk := range wanted {
		if _, known := k.Of(gvk); known {
			delete(k.lookups, gvk)
		} else if asked[gvk.GroupVersion()] {
			if k.lookups == nil {
				k.lookups = map[schema.GroupVersionKind]lookup{}
			}
			l := k.lookups[gvk]
			l.failed(now)
			k.lookups[gvk] = l
		}
	}
}

// RetryLookups makes the lookups of the kinds of some groups due at once, and resets their
// backoff. Nil stands for all groups.
func (k *Kinds) RetryLookups(established map[string]bool) {
	for gvk := range k.lookups {
		switch {
		case established == nil:
			k.lookups[gvk] = lookup{}
		case established[gvk.Group]:
			k.lookups[gvk] = lookup{established: time.Now()}
		}
	}
}
