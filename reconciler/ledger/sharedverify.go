package ledger

import "time"

// verifyInterval is how often Verify lists the objects.
const verifyInterval = time.Minute

// Verify checks once a minute whether the objects of the ledger still exist, and returns the
// names of those that somebody has deleted. If there are any, it marks all records of l as
// unsaved, so that the next Save writes them again; the next leader would find a damaged ledger
// otherwise. If the objects cannot be listed, Verify returns nothing and checks again a minute
// later.
func (s *Shared) Verify(l *Ledger) (missing []string) {
	if s.unsure || s.version == "" || time.Since(s.verified) < verifyInterval {
		return nil
	}
	s.verified = time.Now()
	names, err := s.objects.List()
	if err != nil {
		return nil
	}
	there := make(map[string]bool, len(names))
	for _, name := range names {
		there[name] = true
	}
	if !there[indexName] {
		missing = append(missing, indexName)
		s.unsure = true // the next Save finds out whether another replica has begun one
	}
	for _, seg := range s.index.Segments {
		for n := range seg.Parts {
			if name := seg.part(n); !there[name] {
				missing = append(missing, name)
			}
		}
	}
	if len(missing) > 0 {
		s.incomplete = true
		l.markAll()
	}
	return missing
}
