package proposal

import (
	"context"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/forge"
)

// mostLeftovers bounds the branches of which the forge is asked in one interval.
const mostLeftovers = 10

// removeLeftovers deletes the branches of pull requests of the fleet that have ended while gitfleet
// was not running. A branch without a pull request stays: its change may be about to be offered. It
// returns only errors that every request is likely to meet.
func (f *follower) removeLeftovers(ctx context.Context, now time.Time) error {
	if now.Sub(f.leftoversAt) < f.cfg.Interval || f.leftoverRetry.Wait(now) > 0 {
		return nil
	}
	f.leftoversAt = now
	switch err := f.tryLeftovers(ctx); {
	case err == nil:
		f.leftoverRetry.Succeed()
	case isGeneral(err):
		return err
	case f.leftoverRetry.Fail(err, now):
		f.cfg.Log.Warn("branches of earlier pull requests not deleted; trying again", "err", err)
	}
	return nil
}

func (f *follower) tryLeftovers(ctx context.Context) error {
	if f.leftovers == nil {
		branches, err := f.cfg.Branches.List(ctx, branchPrefix)
		if err != nil {
			return err
		}
		f.leftovers = append([]string{}, branches...)
	}
	for range min(len(f.leftovers), mostLeftovers) {
		branch := f.leftovers[0]
		if _, open := f.open[branch]; !open {
			pr, err := f.cfg.Forge.FindPullRequest(ctx, f.cfg.Base, branch)
			if err != nil {
				return err
			}
			if pr != nil && pr.State != forge.Open && markedAs(pr.Body, f.cfg.Fleet) != "" {
				f.removeBranch(ctx, branch)
			}
		}
		f.leftovers = f.leftovers[1:]
	}
	return nil
}
