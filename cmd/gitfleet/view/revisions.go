package view

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/client"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/output"
	"github.com/gitfleet/gitfleet/reconciler/history"
)

// A revisionHistory is the history of one revision of a placement.
type revisionHistory struct {
	Revision string    `json:"revision"`
	Commit   string    `json:"commit"`
	Author   string    `json:"author,omitempty"`
	Signer   string    `json:"signer,omitempty"` // verified; empty if signatures are not asked for
	Subject  string    `json:"subject,omitempty"`
	Began    time.Time `json:"began"`
	// Took is how long it took to be available on every cluster that got it; empty if it never
	// was.
	Took string `json:"took,omitempty"`
	// Deleted is when the placement with this revision was deleted; zero for the current
	// placement. The revisions of a placement that was added again are counted from zero.
	Deleted time.Time `json:"deleted,omitzero"`
	// Renamed is when the placement was renamed to RenamedTo; zero if it was not.
	Renamed   time.Time        `json:"renamed,omitzero"`
	RenamedTo string           `json:"renamedTo,omitempty"`
	Clusters  []clusterHistory `json:"clusters"`
}

// A clusterHistory is the history of a revision on one cluster.
type clusterHistory struct {
	Cluster  string    `json:"cluster"`
	Assigned time.Time `json:"assigned,omitzero"`
	// Applied and Available are when the revision was first applied, and first available.
	Applied   time.Time `json:"applied,omitzero"`
	Available time.Time `json:"available,omitzero"`
	// Result is the last event, and Message its message.
	Result  history.Event `json:"result"`
	Message string        `json:"message,omitempty"`
	// Replaced says that the cluster got a later revision.
	Replaced bool `json:"replaced,omitempty"`
}

// askRevisions requests the revisions of a placement, including those under former names.
func askRevisions(ctx context.Context, c *client.Client, query url.Values) ([]revisionHistory, error) {
	name := query.Get("placement")
	all, err := entriesOf(ctx, c, query)
	if err != nil {
		return nil, err
	}
	names := []string{name}
	for i := 0; i < len(all); i++ {
		e := all[i]
		if e.Event != history.Renamed || e.To != e.Placement || slices.Contains(names, e.From) {
			continue
		}
		names = append(names, e.From)
		query.Set("placement", e.From)
		former, err := entriesOf(ctx, c, query)
		if err != nil {
			return nil, err
		}
		all = append(all, lastLife(former, e.Time)...)
	}
	slices.SortStableFunc(all, func(a, b history.Entry) int { return a.Time.Compare(b.Time) })
	return revisionsOf(name, all), nil
}

// entriesOf requests the history of a placement and of its clusters, by time.
func entriesOf(ctx context.Context, c *client.Client, query url.Values) ([]history.Entry, error) {
	query.Del("newest")
	var all []history.Entry
	for _, kind := range []history.Kind{history.Placement, history.Cluster} {
		query.Set("kind", string(kind))
		entries, err := historyEntries(ctx, c, query)
		if err != nil {
			return nil, err
		}
		all = append(all, entries...)
	}
	slices.SortStableFunc(all, func(a, b history.Entry) int { return a.Time.Compare(b.Time) })
	return all, nil
}

// lastLife returns the entries up to a time, without those of earlier placements of the
// same name that were deleted.
func lastLife(all []history.Entry, until time.Time) []history.Entry {
	var out []history.Entry
	for _, e := range all {
		switch {
		case e.Time.After(until):
			return out
		case e.Kind == history.Placement && e.Event == history.Removed:
			out = nil
		default:
			out = append(out, e)
		}
	}
	return out
}

// revisionsOf groups entries by revision, the newest last. The entries are those of the
// placement called name, and of the placements from which it was renamed. A placement that was
// added after another one of the name was deleted or renamed is a new one: its revisions are
// counted from zero.
func revisionsOf(name string, entries []history.Entry) []revisionHistory {
	var all []*revisionHistory
	on := map[*revisionHistory]map[string]*clusterHistory{}
	find := func(e history.Entry) *revisionHistory {
		for _, r := range slices.Backward(all) {
			if r.Revision == e.Revision && r.Deleted.IsZero() && r.Renamed.IsZero() {
				return r
			}
		}
		r := &revisionHistory{Revision: e.Revision, Commit: e.Commit, Began: e.Time}
		all = append(all, r)
		on[r] = map[string]*clusterHistory{}
		return r
	}
	current := map[string]*clusterHistory{}
	end := func(mark func(r *revisionHistory)) {
		for _, r := range all {
			if r.Deleted.IsZero() && r.Renamed.IsZero() {
				mark(r)
			}
		}
		clear(current)
	}
	renamed := history.Entry{} // renamed to another name, and not back
	leave := func() {
		if renamed.To != "" {
			end(func(r *revisionHistory) { r.Renamed, r.RenamedTo = renamed.Time, renamed.To })
		}
		renamed = history.Entry{}
	}
	for _, e := range entries {
		switch {
		case e.Event == history.Renamed && e.From == name:
			renamed = e
		case e.Event == history.Renamed && e.To == name:
			renamed = history.Entry{}
		case e.Kind == history.Placement && e.Event == history.Removed:
			end(func(r *revisionHistory) { r.Deleted = e.Time })
		case e.Kind == history.Placement && e.Event == history.Revised:
			if e.Placement == name {
				leave()
			}
			r := find(e)
			r.Commit, r.Author, r.Signer, r.Subject, r.Began = e.Commit, e.Author, e.Signer, e.Subject, e.Time
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
	leave()
	out := make([]revisionHistory, 0, len(all))
	for _, r := range all {
		r.Clusters = []clusterHistory{}
		for _, name := range slices.Sorted(maps.Keys(on[r])) {
			r.Clusters = append(r.Clusters, *on[r][name])
		}
		r.Took = r.took()
		out = append(out, *r)
	}
	return out
}

// take adds an entry about a cluster.
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

// text describes the history on a cluster in a line.
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

// reached returns when the result was first reached, if the result is one that can be reached.
func (c *clusterHistory) reached() time.Time {
	switch c.Result {
	case history.Available:
		return c.Available
	case history.Applied:
		return c.Applied
	}
	return time.Time{}
}

// printRevisions prints a line for each revision, and below it the clusters where it is not
// available; all clusters if the output is wide.
func printRevisions(w io.Writer, all []revisionHistory, f output.Format) error {
	if len(all) == 0 {
		_, err := fmt.Fprintln(w, "No revisions are recorded.")
		return err
	}
	t := output.Table{Header: []string{"REVISION", "COMMIT", "AUTHOR", "STARTED", "TOOK", "AVAILABLE", "SUBJECT"}}
	for _, r := range all {
		t.Rows = append(t.Rows, []string{
			cmp.Or(r.Revision, "-"), output.ShortHash(r.Commit), cmp.Or(personOf(cmp.Or(r.Signer, r.Author)), "-"),
			r.Began.UTC().Format(time.RFC3339), cmp.Or(r.Took, "-"), r.share(), r.Subject,
		})
	}
	header, rows := t.Lines(f)
	if _, err := io.WriteString(w, header); err != nil {
		return err
	}
	p := output.PageOf(w)
	for i, r := range all {
		if _, err := io.WriteString(w, rows[i]); err != nil {
			return err
		}
		for _, c := range r.Clusters {
			if !f.IsWide() && !c.Available.IsZero() && c.Result == history.Available {
				continue
			}
			if _, err := fmt.Fprintln(w, p.Fold(fmt.Sprintf("    %s: %s", c.Cluster, output.Sanitize(c.text())), "      ")); err != nil {
				return err
			}
		}
		if i < len(all)-1 && all[i+1].Deleted.Equal(r.Deleted) && all[i+1].Renamed.Equal(r.Renamed) {
			continue
		}
		if _, err := io.WriteString(w, r.end()); err != nil {
			return err
		}
	}
	return nil
}

// end returns the line about the deletion or renaming of the placement; empty if there was
// neither.
func (r *revisionHistory) end() string {
	switch {
	case !r.Deleted.IsZero():
		return fmt.Sprintf("-- the placement was deleted at %s --\n", r.Deleted.UTC().Format(time.RFC3339))
	case !r.Renamed.IsZero():
		return fmt.Sprintf("-- the placement was renamed to %s at %s --\n", output.Sanitize(r.RenamedTo), r.Renamed.UTC().Format(time.RFC3339))
	}
	return ""
}

// share returns the number of clusters on which it was available, and of all.
func (r *revisionHistory) share() string {
	n := 0
	for _, c := range r.Clusters {
		if !c.Available.IsZero() {
			n++
		}
	}
	return fmt.Sprintf("%d/%d", n, len(r.Clusters))
}
