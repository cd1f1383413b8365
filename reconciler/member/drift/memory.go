package drift

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"iter"
	"slices"
	"strconv"
	"time"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/placement/work"
	"github.com/gitfleet/gitfleet/reconciler/diff"
	"github.com/gitfleet/gitfleet/reconciler/health"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

// A memory has the drift of objects, by placement.
type memory map[api.PlacementKey]map[api.ID]protocol.Drift

// The limits of the memory. A placement on a cluster is one record of the ledger, which is
// written whenever a part of it changes.
const (
	maxDrifts = 50   // objects of a placement whose drift is not held
	maxHeld   = 1000 // objects of a placement whose drift is held
	maxPaths  = 12   // differences of an object
	maxValue  = 160
	maxPath   = 1000 // bytes, as names of keys may be of any length
)

// put records a drift. If there are too many, it drops one that has ended, or otherwise the one
// not seen for the longest time. Of held drifts, which wait for a decision, it drops the
// newest.
func (m memory) put(p api.PlacementKey, d protocol.Drift) {
	of := m[p]
	if of == nil {
		of = map[api.ID]protocol.Drift{}
		m[p] = of
	}
	of[d.ID] = d
	if len(of) <= maxDrifts {
		return
	}
	limit, first := maxDrifts, func(a, b protocol.Drift) int {
		switch present := a.State.Present(); {
		case present == b.State.Present():
			return cmp.Or(a.LastSeen.Compare(b.LastSeen), a.ID.Compare(b.ID))
		case present:
			return 1
		default:
			return -1
		}
	}
	if d.State == api.DriftHeld {
		limit, first = maxHeld, func(a, b protocol.Drift) int { return cmp.Or(b.FirstSeen.Compare(a.FirstSeen), b.ID.Compare(a.ID)) }
	}
	var same []protocol.Drift
	for _, other := range of {
		if (other.State == api.DriftHeld) == (d.State == api.DriftHeld) {
			same = append(same, other)
		}
	}
	if len(same) > limit {
		delete(of, slices.MinFunc(same, first).ID)
	}
}

// all yields all recorded drifts.
func (m memory) all() iter.Seq2[api.PlacementKey, protocol.Drift] {
	return func(yield func(api.PlacementKey, protocol.Drift) bool) {
		for p, of := range m {
			for _, d := range of {
				if !yield(p, d) {
					return
				}
			}
		}
	}
}

// list returns the recorded drifts of a placement, sorted by ID.
func (m memory) list(p api.PlacementKey) []protocol.Drift {
	var out []protocol.Drift
	for _, d := range m[p] {
		out = append(out, d)
	}
	slices.SortFunc(out, func(a, b protocol.Drift) int { return a.ID.Compare(b.ID) })
	return out
}

// forget drops the drift of objects that a placement no longer has. find returns the work of a placement, and whether it has one.
func (m memory) forget(find func(api.PlacementKey) (*work.Work, bool)) {
	for p, of := range m {
		w, told := find(p)
		if !told || w.Remove {
			delete(m, p)
			continue
		}
		if w.Keep {
			continue // the objects of its work are not known
		}
		has := make(map[api.ID]bool, len(w.Manifests))
		for _, o := range w.Manifests {
			has[o.ID] = true
		}
		for id := range of {
			if !has[id] {
				delete(of, id)
			}
		}
	}
}

// record records the observed drift of an object of a placement. anew says that the object has
// drifted once more.
func (m memory) record(p api.PlacementKey, of *work.Manifest, state api.DriftState, now protocol.Drift, anew bool) {
	id, at := of.ID, time.Now()
	d, known := m[p][id]
	if !known {
		d = protocol.Drift{ID: id, FirstSeen: at, Since: at}
	}
	if !d.State.Present() || d.State != state && (d.State == api.DriftIgnored || d.State == api.DriftAltered) {
		d.Since = at // ignored fields, and fields that a webhook changes, do not count as drift
	}
	d.Version, d.Envelope = of.Object.Content.GroupVersionKind().Version, of.Envelope
	d.Addition = now.Addition
	d.State, d.Rule, d.LastSeen, d.Message = state, now.Rule, at, now.Message
	if anew {
		d.Count++
	}
	if anew || now.Paths != nil {
		d.Generation, d.Deleted, d.Paths, d.Digest, d.By = now.Generation, now.Deleted, Shorten(now.Paths), digest(now.Paths), now.By
	}
	m.put(p, d)
}

// end records that a drift has ended.
func (m memory) end(p api.PlacementKey, d protocol.Drift) {
	d.State, d.Rule, d.Message = api.DriftEnded, "", ""
	m.put(p, d)
}

// Shorten keeps the first of many differences, and the beginning of long values and paths.
func Shorten(list []api.Difference) []api.Difference {
	rest := len(list) - maxPaths
	out := slices.Clone(list[:min(len(list), maxPaths)])
	for i := range out {
		out[i].Path = health.Cut(out[i].Path, maxPath)
		out[i].ValueInHub, out[i].ValueInMember = health.Cut(out[i].ValueInHub, maxValue), health.Cut(out[i].ValueInMember, maxValue)
	}
	if rest > 0 {
		last := &out[len(out)-1]
		last.Path += " and " + strconv.Itoa(rest) + " more"
		last.ValueInHub, last.ValueInMember = "(omitted)", "(omitted)"
	}
	return out
}

// Fingerprint returns the ledger's fingerprint of differences, as it is once they were recorded.
func Fingerprint(list []api.Difference) string {
	return protocol.Fingerprint(Shorten(list), digest(list))
}

// digest identifies differences that could be mistaken for others once Shorten has dropped a part of
// them; empty if they cannot. The values of Secrets are masked already, so that it does not depend on
// them.
func digest(list []api.Difference) string {
	isCut := func(d api.Difference) bool {
		return len(d.Path) > maxPath || len(d.ValueInMember) > maxValue && d.MemberJSON == nil || len(d.ValueInHub) > maxValue && d.HubJSON == nil
	}
	if len(list) <= maxPaths && !slices.ContainsFunc(list, isCut) {
		return ""
	}
	var all []any
	for _, d := range list {
		all = append(all, d.PatchDetail, d.MemberJSON)
	}
	text, _ := json.Marshal(all) // texts can always be encoded
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:10])
}

// SameValues reports whether a comparison has found what a record of differences has.
func SameValues(found, known []api.PatchDetail) bool {
	shown := Shorten(diff.Differences(nil, api.FieldManager, found))
	return slices.EqualFunc(shown, known, func(a api.Difference, b api.PatchDetail) bool { return a.PatchDetail == b })
}

// altered returns the fields that a server is known to store differently from what is applied.
func (m memory) altered(p api.PlacementKey, id api.ID) []api.PatchDetail {
	d := m[p][id]
	if d.State != api.DriftAltered {
		return nil
	}
	var list []api.PatchDetail
	for _, path := range d.Paths {
		list = append(list, path.PatchDetail)
	}
	return list
}
