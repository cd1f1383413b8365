package member

import (
	"fmt"

	"github.com/gitfleet/gitfleet/placement/api"
)

// A Brake says how much may go at once without a person's word: deletions are
// held if they are more than Objects and more than Percent of all that we have
// on the cluster. Namespaces, custom resource definitions and volume claims
// with content are always held.
type Brake struct{ Percent, Objects int }

// brake decides before a full pass whether what it would delete is too much.
// Then none of it is deleted; everything else goes on. deletes says of an object
// that nobody wants whether it would be deleted without anybody's word.
func (s *session) brake(ids map[api.ID]bool, deletes func(stale) bool) {
	clear(s.braked)
	var going []api.ID
	total := 0
	for id := range ids {
		for _, inv := range s.inv {
			if inv.items.has(id) {
				total++
			}
		}
		for _, st := range s.stales(id) {
			if !st.passesOn() && deletes(st) {
				going = append(going, id)
			}
		}
	}
	if len(going) <= s.cfg.Brake.Objects || len(going)*100 <= total*s.cfg.Brake.Percent {
		return
	}
	why := fmt.Sprintf("deleting %d of the %d objects that gitfleet has on this cluster is more than %d %%", len(going), total, s.cfg.Brake.Percent)
	for _, id := range going {
		s.braked[id] = why
	}
	s.cfg.Log.Warn("deletions are held until a commit allows them", "cluster", s.cfg.Name, "objects", len(going), "of", total)
}

// deletes reports whether removing an object would delete it without anybody's
// word, as far as its watch tells: what the watch does not see counts.
func (s *session) deletes(st stale) bool {
	l := s.live.of(st.item.id())
	if l == nil && !s.watch.of(st.item.gvk()).sees() {
		return !s.allowed(st) && !s.abandons(st)
	}
	return s.deletesLive(st, l)
}

// deletesLive is deletes of an object of which it is known how it is; nil if it
// is not there. One that is gone, on its way out or not ours any more is not
// deleted, nor is one that is only given up.
func (s *session) deletesLive(st stale, l *live) bool {
	return l != nil && l.fleet == s.cfg.Fleet && !l.terminating && !s.allowed(st) && !s.releases(st, l)
}

// allowed reports whether a commit allows what goes of a placement.
func (s *session) allowed(st stale) bool { return s.works[st.inv.Placement].AllowDelete }

// releases reports whether an object is given up, and not deleted: if it asks
// for that itself, or its placement does.
func (s *session) releases(st stale, l *live) bool { return l.kept || s.abandons(st) }

// abandons reports whether a placement that goes leaves its objects.
func (s *session) abandons(st stale) bool {
	return st.inv.Abandon && !s.placed(st.inv.Placement)
}

func (s *session) hold(id api.ID, why string) {
	if s.braked[id] == "" {
		s.cfg.Log.Warn("deletion is held until a commit allows it", "cluster", s.cfg.Name, "object", id.String(), "why", why)
	}
	s.braked[id] = why
}
