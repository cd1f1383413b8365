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
func (p *Proposer) removeLeftovers(ctx context.Context, now time.Time) error {
	if now.Sub(p.leftoversAt) < p.cfg.Interval || p.leftoverRetry.Wait(now) > 0 {
		return nil
	}
	p.leftoversAt = now
	switch err := p.tryLeftovers(ctx); {
	case err == nil:
		p.leftoverRetry.Succeed()
	case isGeneral(err):
		return err
	case p.leftoverRetry.Fail(err, now):
		p.cfg.Log.Warn("branches of earlier pull requests not deleted; trying again", "err", err)
	}
	return nil
}

func (p *Proposer) tryLeftovers(ctx context.Context) error {
	if p.leftovers == nil {
		branches, err := p.cfg.Branches.List(ctx, branchPrefix)
		if err != nil {
			return err
		}
		p.leftovers = append([]string{}, branches...)
	}
	for range min(len(p.leftovers), mostLeftovers) {
		branch := p.leftovers[0]
		if _, open := p.open[branch]; !open {
			pr, err := p.cfg.Forge.FindPullRequest(ctx, p.cfg.Base, branch)
			if err != nil {
				return err
			}
			if pr != nil && pr.State != forge.Open && markedAs(pr.Body, p.cfg.Fleet) != "" {
				p.removeBranch(ctx, branch)
			}
		}
		p.leftovers = p.leftovers[1:]
	}
	return nil
}
