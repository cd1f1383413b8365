package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"github.com/gitfleet/gitfleet/reconciler/forecast"
	"github.com/gitfleet/gitfleet/reconciler/review"
	"github.com/gitfleet/gitfleet/reconciler/server"
)

// A pullRequestPlan is what the daemon answers about a pull request.
type pullRequestPlan struct {
	Text string `json:"text"`
	// Changes says whether merging changes anything, Failed whether it cannot be planned or
	// has problems.
	Changes bool `json:"changes"`
	Failed  bool `json:"failed"`
}

// servePlans answers GET /plan?pullRequest=NUMBER. preview is nil if pull requests are not
// planned. objection is why this replica does not plan them, as only the leader does; nil if
// it does.
func servePlans(srv *server.Server, objection func() error, preview func(ctx context.Context, number int64) (*review.Preview, error)) {
	srv.Mount("GET /plan", http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		number, err := strconv.ParseInt(req.URL.Query().Get("pullRequest"), 10, 64)
		switch {
		case err != nil || number <= 0:
			http.Error(w, "pullRequest: must be the number of a pull request", http.StatusBadRequest)
			return
		case preview == nil:
			http.Error(w, "the daemon does not plan pull requests: set pullRequests.plans", http.StatusNotFound)
			return
		}
		if err := objection(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		p, err := preview(req.Context(), number)
		if err != nil {
			http.Error(w, err.Error(), http.StatusUnprocessableEntity)
			return
		}
		var text bytes.Buffer
		printPreview(&text, p)
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(pullRequestPlan{text.String(), !p.None(), p.Failed()}) // a reader that went away is not our concern
	}))
}

// printPreview writes the whole plan of a pull request.
func printPreview(b *bytes.Buffer, p *review.Preview) {
	_, status := p.Status()
	fmt.Fprintf(b, "Merging %s into %s: %s\n\n", short(p.Head), short(p.Base), printable(status))
	for _, problem := range p.Problems {
		fmt.Fprintf(b, "%s: %s\n", problem.Severity, printable(problem.Error()))
	}
	if len(p.Problems) > 0 {
		fmt.Fprintln(b)
	}
	if p.Failed() && !p.Changes.Compared {
		return
	}
	printAnswers(b, p.Answers)
	printChanges(b, p.Changes, p.Deletions())
	for _, c := range p.Contents {
		fmt.Fprintf(b, "%s (%s) changes on %s\n", c.After.ID, c.Placement, forecast.FewOf(c.Clusters))
		for _, d := range review.Fields(c) {
			fmt.Fprintf(b, "    %s: %s → %s\n", printable(d.Path), printable(orNone(d.ValueInHub)), printable(orNone(d.ValueInMember)))
		}
	}
	for _, r := range p.Rollouts {
		fmt.Fprintf(b, "%s: %s, at most %d unavailable and %d added at a time; first %s\n", r.Placement, number(r.Clusters, "cluster"), r.MaxUnavailable, r.MaxSurge, forecast.FewOf(r.First))
	}
}

// printAnswers writes what the members say; nothing if they were not asked.
func printAnswers(b *bytes.Buffer, a *review.Answers) {
	if a == nil {
		return
	}
	fmt.Fprintf(b, "On the members, by a dry run: %s\n", printable(a.Summary()))
	for _, f := range a.Findings() {
		fmt.Fprintf(b, "  %s (%s) on %s: %s\n", f.Object, f.Placement, forecast.FewOf(f.Clusters), f.Text)
		if f.Detail != "" {
			fmt.Fprintf(b, "      %s\n", printable(f.Detail))
		}
	}
	fmt.Fprintln(b)
}

// planPullRequest asks the daemon for the plan of a pull request, and prints it.
func (c *connection) planPullRequest(ctx context.Context, w io.Writer, number int64) error {
	daemon, err := c.client()
	if err != nil {
		return err
	}
	var p pullRequestPlan
	if err := daemon.get(ctx, "/plan", url.Values{"pullRequest": {strconv.FormatInt(number, 10)}}, &p); err != nil {
		return err
	}
	if _, err := io.WriteString(w, p.Text); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	switch {
	case p.Failed:
		return exitCode(exitError)
	case p.Changes:
		return exitCode(exitDifferences)
	}
	return nil
}
