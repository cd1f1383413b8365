package discovery

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gitfleet/gitfleet/reconciler/member/retry"
)

// A lookup schedules when the server is asked again for a kind that it did not serve.
type lookup struct {
	failures retry.Backoff
	next     time.Time
	// established is when a definition of the group was established; zero if none was
	// since the first lookup.
	established time.Time
}

const (
	firstLookup = 100 * time.Millisecond // definitions often come with their objects
	// LastLookup is the longest time between two lookups.
	LastLookup = 5 * time.Minute
	// Discovery may lag behind a definition that was just established: for some time the server
	// is asked at least this often.
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

// due reports whether the server may be asked for an unknown kind now.
func (k *Kinds) due(gvk schema.GroupVersionKind, now time.Time) bool {
	l := k.lookups[gvk]
	return l == nil || !now.Before(l.next)
}

// NextLookup returns when the server is asked again for a kind that it did not serve.
func (k *Kinds) NextLookup(gvk schema.GroupVersionKind) time.Time {
	if l := k.lookups[gvk]; l != nil {
		return l.next
	}
	return time.Time{}
}

// lookedUp schedules the next lookups of kinds that are still unknown, in the group versions
// that were requested.
func (k *Kinds) lookedUp(wanted map[schema.GroupVersionKind]bool, asked map[schema.GroupVersion]bool) {
	now := time.Now()
	for gvk := range wanted {
		if _, known := k.Of(gvk); known {
			delete(k.lookups, gvk)
			continue
		}
		if !asked[gvk.GroupVersion()] {
			continue
		}
		if k.lookups == nil {
			k.lookups = map[schema.GroupVersionKind]*lookup{}
		}
		if k.lookups[gvk] == nil {
			k.lookups[gvk] = &lookup{}
		}
		k.lookups[gvk].failed(now)
	}
}

// LookAgain makes lookups of the kinds of some groups due at once, and resets their backoff.
// nil means all groups.
func (k *Kinds) LookAgain(established map[string]bool) {
	for gvk, l := range k.lookups {
		switch {
		case established == nil:
			*l = lookup{}
		case established[gvk.Group]:
			*l = lookup{established: time.Now()}
		}
	}
}
