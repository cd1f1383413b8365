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
// Then none of it is deleted; everything else goes on.
func (s *session) brake(ids map[api.ID]bool) {
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
			if !st.handedOver && s.deletes(st) {
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
// word: not if a commit allows it, or if it is only given up, as its placement or
// the object itself asks.
func (s *session) deletes(st stale) bool {
	if s.works[st.inv.Placement].AllowDelete || st.inv.Abandon && !s.placed(st.inv.Placement) {
		return false
	}
	l := s.live.of(st.item.id())
	return l == nil || !l.kept
}

func (s *session) hold(id api.ID, why string) {
	if s.braked[id] == "" {
		s.cfg.Log.Warn("deletion is held until a commit allows it", "cluster", s.cfg.Name, "object", id.String(), "why", why)
	}
	s.braked[id] = why
}
