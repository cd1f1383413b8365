package review

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/gitsource/forge"
)

// A forksLabel creates the label for forks.
type forksLabel struct {
	// settled says that the label was created, or is refused.
	settled bool
}

// ensure creates the label once. If that is refused, somebody else has to.
func (l *forksLabel) ensure(ctx context.Context, cfg *Config) {
	if l.settled || cfg.ForksLabel == "" || cfg.AuthorSetsLabels {
		return
	}
	err := cfg.Forge.EnsureLabels(ctx, []forge.Label{{Name: cfg.ForksLabel, Color: "#0969da", Description: "Plans the newest commit of a pull request from a fork"}})
	if err != nil && forge.IsGeneral(err) {
		return // it is tried again
	}
	if l.settled = true; err != nil {
		cfg.Log.Warn("label for pull requests from forks not created; create it by hand", "label", cfg.ForksLabel, "err", err)
	}
}

// observeFork returns what is known of a listed pull request, given what was known. The label counts for
// a head that was listed before without it, and for one that a comment says it counts for. Otherwise
// somebody may have pushed the head after the label was set, so that the label is removed.
func (v *Reviewer) observeFork(ctx context.Context, pr forge.PullRequest, known fork) (fork, error) {
	switch {
	case v.labelMissing(pr) != "":
		return fork{unlabeled: pr.Head}, nil
	case known.allowed == pr.Head, known.refused == pr.Head:
		return known, nil
	case known.unlabeled == pr.Head:
		return fork{allowed: pr.Head}, nil
	}
	existing, err := v.cfg.Forge.FindComment(ctx, pr.Number, marker(v.cfg.Fleet))
	if err != nil && forge.IsGeneral(err) {
		return known, err
	}
	if err != nil { // of this pull request alone, whose head stays without a plan
		v.cfg.Log.Warn("comments of a pull request from a fork cannot be read; it is not planned", "url", pr.URL, "commit", pr.Head, "err", err)
		return known, nil
	}
	if existing != nil {
		// What is below the title may quote the pull request.
		if markers, _, _ := strings.Cut(existing.Body, planTitle); strings.Contains(markers, allowedMarker(pr.Head)) {
			return fork{allowed: pr.Head}, nil
		}
	}
	err = v.cfg.Forge.Edit(ctx, pr.Thread, forge.Edit{RemoveLabels: []string{v.cfg.ForksLabel}})
	if err == nil {
		err = v.cfg.Forge.SetStatus(ctx, forge.Status{
			Commit: pr.Head, Context: v.cfg.statusName("plan"), State: forge.StatusPending, URL: pr.URL,
			Description: shortened(fmt.Sprintf("not planned: the label %q may be older than this commit; set it again", v.cfg.ForksLabel)),
		})
	}
	if err != nil && forge.IsGeneral(err) {
		return known, err
	}
	v.cfg.Log.Info("pull request from a fork not planned: its label may be older than its commit, and has to be set again", "url", pr.URL, "commit", pr.Head, "err", err)
	return fork{refused: pr.Head}, nil
}

// labelMissing returns the reason why no commit of a pull request from a fork is planned; empty if there
// is none.
func (v *Reviewer) labelMissing(pr forge.PullRequest) string {
	switch {
	case v.cfg.AuthorSetsLabels:
		return "no pull request from a fork is planned on this forge, where its author can set its labels"
	case v.cfg.ForksLabel == "":
		return "no pull request from a fork is planned unless pullRequests.forksLabel is set"
	case !slices.Contains(pr.Labels, v.cfg.ForksLabel):
		return fmt.Sprintf("does not have the label %q, with which a maintainer has it planned", v.cfg.ForksLabel)
	}
	return ""
}

// refusesFork returns the reason why a pull request from a fork is not planned; empty if it is.
func (v *Reviewer) refusesFork(pr forge.PullRequest) string {
	switch missing := v.labelMissing(pr); {
	case missing != "":
		return missing
	case v.forks[pr.Number].allowed == pr.Head:
		return ""
	case !v.cfg.Plans:
		return "pullRequests.plans is off, so that it is not known for which commit its label was set"
	}
	return fmt.Sprintf("its label %q may be older than its commit: a maintainer has to set it again", v.cfg.ForksLabel)
}
