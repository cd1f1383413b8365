package rollout

import "time"

// seen makes the member of a cluster report the health of its content.
func (w *world) seen(b *Target, health Health) {
	now := Seen{Hash: b.Assigned.Hash, Health: health, Since: w.in.Now}
	if b.Seen.Hash == now.Hash {
		now.Writing, now.DownSince = b.Seen.Writing, b.Seen.DownSince
	}
	if health == Available || health == Untracked {
		now.Writing, now.DownSince = false, time.Time{}
	} else if now.DownSince.IsZero() {
		now.DownSince = w.in.Now
	}
	b.Seen = now
}

// mayBeUp reports whether a cluster that is reported as unavailable may be available again in a moment, with
// the content that it has: it counted as available with it, and is unavailable for less than half a minute, or because of
// a write of gitfleet that has not failed.
func (w *world) mayBeUp(b *Target) bool {
	if !b.HasRevision() || b.Seen.Hash != b.Assigned.Hash || b.Seen.Health != Unavailable && b.Seen.Health != Failed || !w.counted[b.Cluster] {
		return false
	}
	long := !b.Seen.DownSince.IsZero() && w.in.Now.Sub(b.Seen.DownSince) >= 30*time.Second
	if b.Seen.Writing && !w.isBroken(b) && (w.in.AvailableTimeout > 0 || w.in.Now.Sub(b.Seen.Since) < 10*time.Minute) {
		long = false
	}
	return aside(b) || !long
}

// isMissed reports whether a cluster that is unreachable or suspended counts as unavailable, since it was in the
// middle of an update half a minute ago.
func (w *world) isMissed(b *Target) bool {
	return aside(b) && b.Risked && w.in.Now.Sub(b.BlockedSince) < 30*time.Second
}

// aside reports whether nothing can be done on a cluster.
func aside(b *Target) bool { return b.Unreachable || b.Suspended != "" }

// isBroken reports whether a cluster will not become available by itself, or its time is over.
func (w *world) isBroken(b *Target) bool {
	if !b.HasRevision() || b.Seen.Hash != b.Assigned.Hash || aside(b) {
		return false
	}
	late := w.in.AvailableTimeout > 0 && w.in.Now.Sub(b.Seen.Since) >= w.in.AvailableTimeout
	return b.Seen.Health == Failed || b.Seen.Health == Unavailable && (b.Seen.Failure != "" || late)
}
