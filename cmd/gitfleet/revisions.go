package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/gitfleet/gitfleet/reconciler/history"
)

// A revisionHistory is what became of one revision of a placement.
type revisionHistory struct {
	Revision string    `json:"revision"`
	Commit   string    `json:"commit"`
	Author   string    `json:"author,omitempty"`
	Subject  string    `json:"subject,omitempty"`
	Began    time.Time `json:"began"`
	// Took is how long it was until it was available on every cluster that got
	// it; empty if it was not.
	Took     string           `json:"took,omitempty"`
	Clusters []clusterHistory `json:"clusters"`
}

// A clusterHistory is what became of a revision on one cluster.
type clusterHistory struct {
	Cluster  string    `json:"cluster"`
	Assigned time.Time `json:"assigned,omitzero"`
	// Applied and Available are when it first was.
	Applied   time.Time `json:"applied,omitzero"`
	Available time.Time `json:"available,omitzero"`
	// Result is the last that was heard, Message what was said then.
	Result  history.Event `json:"result"`
	Message string        `json:"message,omitempty"`
	// Replaced says that the cluster got a later revision.
	Replaced bool `json:"replaced,omitempty"`
}

// askRevisions asks for what happened to a placement, and on its clusters.
func askRevisions(ctx context.Context, c *client, query url.Values) ([]revisionHistory, error) {
	query.Del("newest")
	var all []history.Entry
	for _, kind := range []history.Kind{history.Placement, history.Cluster} {
		query.Set("kind", string(kind))
		entries, err := c.history(ctx, query)
		if err != nil {
			return nil, err
		}
		all = append(all, entries...)
	}
	slices.SortStableFunc(all, func(a, b history.Entry) int { return a.Time.Compare(b.Time) })
	return revisionsOf(all), nil
}

// revisionsOf puts together what belongs to one revision; the newest come first.
func revisionsOf(entries []history.Entry) []revisionHistory {
	var all []*revisionHistory
	on := map[*revisionHistory]map[string]*clusterHistory{}
	find := func(e history.Entry) *revisionHistory {
		for _, r := range slices.Backward(all) {
			if r.Revision == e.Revision {
				return r
			}
		}
		r := &revisionHistory{Revision: e.Revision, Commit: e.Commit, Began: e.Time}
		all = append(all, r)
		on[r] = map[string]*clusterHistory{}
		return r
	}
	current := map[string]*clusterHistory{}
	for _, e := range entries {
		switch {
		case e.Kind == history.Placement && e.Event == history.Revised:
			r := find(e)
			r.Commit, r.Author, r.Subject, r.Began = e.Commit, e.Author, e.Subject, e.Time
		case e.Kind != history.Cluster:
		case e.Revision == "":
			if c := current[e.Cluster]; c != nil {
				c.Result, c.Message = e.Event, e.Message
			}
		default:
			r := find(e)
			c := on[r][e.Cluster]
			if c == nil {
				c = &clusterHistory{Cluster: e.Cluster}
				on[r][e.Cluster] = c
			}
			if before := current[e.Cluster]; before != nil && before != c {
				before.Replaced = true
			}
			current[e.Cluster] = c
			c.take(e)
		}
	}
	out := make([]revisionHistory, 0, len(all))
	for _, r := range slices.Backward(all) {
		r.Clusters = []clusterHistory{}
		for _, name := range slices.Sorted(maps.Keys(on[r])) {
			r.Clusters = append(r.Clusters, *on[r][name])
		}
		r.Took = r.took()
		out = append(out, *r)
	}
	return out
}

// take takes in what was heard of a cluster.
func (c *clusterHistory) take(e history.Entry) {
	c.Result, c.Message = e.Event, e.Message
	switch {
	case e.Event == history.Assigned:
		c.Assigned = e.Time
	case e.Event == history.Applied && c.Applied.IsZero():
		c.Applied = e.Time
	case e.Event == history.Available && c.Available.IsZero():
		c.Available = e.Time
	}
}

func (r *revisionHistory) took() string {
	last := time.Time{}
	for _, c := range r.Clusters {
		if c.Available.IsZero() {
			return ""
		}
		if c.Available.After(last) {
			last = c.Available
		}
	}
	if last.IsZero() {
		return ""
	}
	return duration.HumanDuration(last.Sub(r.Began))
}

// text is what became of it on a cluster, in a line.
func (c *clusterHistory) text() string {
	text := string(c.Result)
	if at := c.reached(); !at.IsZero() && !c.Assigned.IsZero() {
		text += " after " + duration.HumanDuration(at.Sub(c.Assigned))
	}
	if c.Replaced {
		text += ", then replaced"
	}
	if c.Message != "" {
		text += ": " + c.Message
	}
	return text
}

// reached is when the result first was, if it is one that is reached.
func (c *clusterHistory) reached() time.Time {
	switch c.Result {
	case history.Available:
		return c.Available
	case history.Applied:
		return c.Applied
	}
	return time.Time{}
}

// printRevisions writes a line for each revision, and below it those clusters
// where it is not available; with all of them if there is room for everything.
func printRevisions(w io.Writer, all []revisionHistory, everything bool) error {
	if len(all) == 0 {
		_, err := fmt.Fprintln(w, "Nothing is recorded of it.")
		return err
	}
	var b strings.Builder
	tw := tabwriter.NewWriter(&b, 0, 0, 3, ' ', 0)
	fmt.Fprintln(tw, "REVISION\tCOMMIT\tAUTHOR\tBEGAN\tTOOK\tAVAILABLE\tSUBJECT")
	for _, r := range all {
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", orDash(r.Revision), short(r.Commit), harmless(cmp.Or(personOf(r.Author), "-")),
			r.Began.UTC().Format(time.RFC3339), orDash(r.Took), r.share(), harmless(r.Subject))
	}
	tw.Flush()
	lines := strings.SplitAfter(b.String(), "\n")
	if _, err := io.WriteString(w, lines[0]); err != nil {
		return err
	}
	for i, r := range all {
		text := lines[i+1]
		for _, c := range r.Clusters {
			if everything || c.Available.IsZero() || c.Result != history.Available {
				text += fmt.Sprintf("    %s: %s\n", c.Cluster, harmless(c.text()))
			}
		}
		if _, err := io.WriteString(w, text); err != nil {
			return err
		}
	}
	return nil
}

// share is on how many clusters it was available, of how many.
func (r *revisionHistory) share() string {
	n := 0
	for _, c := range r.Clusters {
		if !c.Available.IsZero() {
			n++
		}
	}
	return fmt.Sprintf("%d/%d", n, len(r.Clusters))
}
