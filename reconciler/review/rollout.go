package review

import (
	"context"
	"fmt"
	"strings"

	"github.com/gitfleet/gitfleet/gitsource/forge"
	"github.com/gitfleet/gitfleet/gitsource/forge/markdown"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// A rollout is what the commits of the base are shown with.
type rollout struct {
	// inForce is the status of the commit in force, refused that of the newest commit if it
	// is not in force.
	inForce, refused forge.Status
}

// showRollout sets the statuses of the commit in force and of one that is refused. What
// was said last of a commit that is no longer in force stays, unless it was still under way.
func (v *Reviewer) showRollout(ctx context.Context) error {
	source := &v.report.Source
	now := v.rolloutStatus(source.InForce.Hash)
	if last := v.rollout.inForce; last.Commit != "" && last.Commit != now.Commit && last.State == forge.StatusPending {
		last.State, last.Description = forge.StatusErrored, fmt.Sprintf("superseded by %s at %s", short(now.Commit), last.Description)
		if err := v.set(ctx, &v.rollout.inForce, last); err != nil {
			return err
		}
	}
	if err := v.set(ctx, &v.rollout.inForce, now); err != nil {
		return err
	}
	why := source.LoadError
	if len(source.Problems) > 0 {
		why = source.Problems.Summary()
	}
	if why == "" || source.Newest.Hash == source.InForce.Hash {
		return nil
	}
	return v.set(ctx, &v.rollout.refused, v.commitStatus(source.Newest.Hash, forge.StatusFailure, "refused: "+why))
}

func (v *Reviewer) commitStatus(commit string, state forge.StatusState, text string) forge.Status {
	return forge.Status{Commit: commit, Context: rolloutContext, State: state, Description: shortened(markdown.Plain(text))}
}

// set sets a status if it is another than the last one.
func (v *Reviewer) set(ctx context.Context, last *forge.Status, s forge.Status) error {
	if s == *last {
		return nil
	}
	if err := v.cfg.Forge.SetStatus(ctx, s); err != nil {
		return err
	}
	*last = s
	return nil
}

// rolloutStatus is how far the commit in force is.
func (v *Reviewer) rolloutStatus(commit string) forge.Status {
	p := progressOf(v.report, commit)
	switch {
	case p.failure != "":
		return v.commitStatus(commit, forge.StatusFailure, p.text()+"; "+p.failure)
	case p.done < len(p.clusters) || p.held > 0:
		return v.commitStatus(commit, forge.StatusPending, p.text())
	case len(p.clusters) == 0:
		return v.commitStatus(commit, forge.StatusSuccess, "no cluster changes")
	}
	return v.commitStatus(commit, forge.StatusSuccess, p.text())
}

// progress is how many of the clusters that a commit changes have it.
type progress struct {
	clusters  map[string]bool // whether all of it is there and available
	done      int
	held      int
	suspended int
	failure   string
}

func (p *progress) text() string {
	text := fmt.Sprintf("%d of %s", p.done, count(len(p.clusters), "cluster"))
	if p.suspended > 0 {
		text += fmt.Sprintf(", %d suspended", p.suspended)
	}
	if p.held > 0 {
		text += fmt.Sprintf("; %s held until a commit allows them", count(p.held, "deletion"))
	}
	return text
}

func progressOf(r *status.Report, commit string) *progress {
	p := &progress{clusters: map[string]bool{}}
	suspended := map[string]bool{}
	for _, d := range r.Details {
		for i := range d.Clusters {
			c := &d.Clusters[i]
			p.held += len(c.Braked)
			if c.Commit != commit && c.Behind == 0 && c.Held == "" && !c.Removing {
				continue
			}
			if c.Suspended != "" {
				suspended[c.Cluster] = true
				continue
			}
			ready := c.Available && c.Behind == 0 && c.Held == "" && !c.Removing
			before, known := p.clusters[c.Cluster]
			p.clusters[c.Cluster] = ready && (before || !known)
			if p.failure == "" && c.Failure != "" {
				p.failure = fmt.Sprintf("%s on %s: %s", d.Placement, c.Cluster, firstLine(c.Failure))
			}
		}
	}
	for _, ready := range p.clusters {
		if ready {
			p.done++
		}
	}
	p.suspended = len(suspended)
	return p
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}
