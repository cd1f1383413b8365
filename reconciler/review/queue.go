package review

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/forge"
)

// maxMarks is the maximum number of pull requests whose outdated or missing plans are shown in one pass.
const maxMarks = 10

// outdated returns the pull requests that have to be planned and may be tried now: those with the fewest failures first, and then
// those whose last plan is the oldest, so that none starves in a burst. The newest head comes before all of them, once, unless
// the last plan was that of a newest head as well.
func (v *Reviewer) outdated(now time.Time) []*review {
	var out []*review
	for _, r := range v.reviews {
		if r.key != v.key(r.pr) && r.retry.Wait(now) <= 0 {
			out = append(out, r)
		}
	}
	newest := v.newest(out)
	first := func(r *review) int {
		if r == newest && !v.newestFirst {
			return 0
		}
		return 1
	}
	slices.SortFunc(out, func(a, b *review) int {
		return cmp.Or(first(a)-first(b), a.retry.Failures()-b.retry.Failures(), a.tried.Compare(b.tried), a.headOrder-b.headOrder)
	})
	return out
}

// newest returns the head that was found last, if it is among these and was never planned; nil if it is not.
func (v *Reviewer) newest(among []*review) *review {
	last := 0
	for _, r := range v.reviews {
		last = max(last, r.headOrder)
	}
	i := slices.IndexFunc(among, func(r *review) bool { return r.headOrder == last && r.tried.IsZero() })
	if i < 0 {
		return nil
	}
	return among[i]
}

// markOutdated shows with a pending status that plans of pull requests are awaited or outdated, also after a restart. next is
// planned at once; it may be nil. more says that some are left for the next pass.
func (v *Reviewer) markOutdated(ctx context.Context, outdated []*review, next *review, now time.Time) (more bool, err error) {
	marks := 0
	for _, r := range outdated {
		if r.marked {
			continue
		}
		if marks++; marks > maxMarks {
			return true, nil
		}
		if err := v.recordError(ctx, r, v.mark(ctx, r, r == next), now); err != nil {
			return false, err
		}
	}
	return false, nil
}

// mark sets the status of a pull request whose plan is outdated or was never made. The first plan of one that is planned at once
// needs no such status.
func (v *Reviewer) mark(ctx context.Context, r *review, atOnce bool) error {
	stale, planned := r.key != "", r.key != ""
	if !stale {
		existing, err := v.cfg.Forge.FindComment(ctx, r.pr.Number, marker(v.cfg.Fleet))
		if err != nil {
			return err
		}
		planned = existing != nil && strings.Contains(existing.Body, keyMarkerOf(r.pr.Head))
		stale = planned && !strings.Contains(existing.Body, keyMarker(v.key(r.pr)))
	}
	if !planned && !atOnce && openedByGitfleet(r.pr) { // without a comment, the status says whether it was planned
		found, err := v.cfg.Forge.FindStatus(ctx, r.pr.Head, v.cfg.statusName("plan"))
		if err != nil {
			return err
		}
		planned = found != nil
	}
	text := ""
	switch {
	case stale:
		text = "stale: " + v.cfg.Base + " or the fleet has changed since; planned again soon"
	case !planned && !atOnce:
		text = "not planned yet: other pull requests come first"
	}
	if text != "" {
		if err := v.setPlanStatus(ctx, r, forge.StatusPending, text); err != nil {
			return err
		}
	}
	r.marked, r.key = stale || !atOnce, ""
	return nil
}
