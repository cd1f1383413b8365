package view

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/client"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/lookup"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/output"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/history"
)

// NewHistory returns the command history.
func NewHistory() *cobra.Command {
	var at client.Connection
	var q historyQuery
	var out output.Format
	cmd := &cobra.Command{
		Use:   "history [PLACEMENT|CLUSTER]",
		Short: "Show the recorded revisions and events",
		Long: `History of a placement lists its revisions, the newest last: the commit that
brought each, its author, when it started, how long it took until it was
available on every cluster, and the result on each cluster.

Without a placement, or with --cluster, --object or --kind, it lists single
entries, the newest last: commits, placements, clusters, objects, and what users
asked for. --export writes all of them as JSON lines.

The record is kept in the state directory of the daemon; its size is limited by
the setting history.maxSize.`,
		Example: `  gitfleet history crp/web
  gitfleet history --since 24h --cluster member-3
  gitfleet history --object deployment.apps/shop/web --kind object
  gitfleet history --export > history.jsonl`,
		Args: cobra.MaximumNArgs(1),
		RunE: at.WithClient(func(cmd *cobra.Command, args []string, c *client.Client) error {
			if err := q.resolve(cmd.Context(), c, args); err != nil {
				return err
			}
			return q.answer(cmd.Context(), c, out, cmd.OutOrStdout(), cmd.ErrOrStderr())
		}),
	}
	f := cmd.Flags()
	f.StringVar(&q.since, "since", "", "only entries since then: 30m, 24h, 7d, or a time such as 2026-01-31T12:00:00Z")
	f.StringVar(&q.cluster, "cluster", "", "only entries about this cluster")
	f.StringVar(&q.object, "object", "", "only entries about this object, KIND/NAME, or about objects with this text in their name")
	f.StringVarP(&q.namespace, "namespace", "n", "", "namespace of the object")
	f.StringVar(&q.kind, "kind", "", "only entries of this kind: commit, placement, cluster, object, member or action")
	f.SetAnnotation("kind", output.ValuesAnnotation, historyKinds)
	f.IntVar(&q.newest, "newest", fewLines, "how many lines or revisions to show at most, the last ones; 0 for all")
	f.BoolVar(&q.export, "export", false, "write everything as JSON lines")
	out.Bind(f, "table", "wide")
	at.Bind(f)
	return cmd
}

// A historyQuery has the arguments of history.
type historyQuery struct {
	placement, since, cluster, object, namespace, kind string
	newest                                             int
	export                                             bool
}

// resolve resolves the name of a placement or a cluster. A deleted one still has a history.
func (q *historyQuery) resolve(ctx context.Context, c *client.Client, args []string) error {
	if err := lookup.Name("kind of entry", q.kind, historyKinds); err != nil {
		return err
	}
	q.cluster = api.ClusterName(q.cluster)
	if len(args) == 0 {
		return nil
	}
	s, err := c.Subject(ctx, args[0])
	q.placement, q.cluster = s.Placement, cmp.Or(s.Cluster, q.cluster)
	return err
}

// historyKinds are the values of --kind.
var historyKinds = []string{
	string(history.Commit), string(history.Placement), string(history.Cluster), string(history.Object), string(history.Member), string(history.Action),
}

// check returns an error if nothing is recorded because there is no placement or cluster of
// that name.
func (q *historyQuery) check(ctx context.Context, c *client.Client) error {
	if q.placement == "" && q.cluster == "" {
		return nil
	}
	known, err := c.Names(ctx)
	if err == nil {
		err = lookup.Name("placement", q.placement, known.Placements)
	}
	if err == nil {
		err = lookup.Name("cluster", q.cluster, known.Clusters)
	}
	return err
}

// fewLines is the default number of entries.
const fewLines = 50

func (q *historyQuery) answer(ctx context.Context, c *client.Client, f output.Format, out, errOut io.Writer) error {
	query, err := q.query(time.Now())
	if err != nil {
		return err
	}
	if q.export {
		return q.write(ctx, c, query, out)
	}
	ofPlacement := q.placement != "" && q.cluster == "" && q.object == "" && q.kind == ""
	var revisions []revisionHistory
	var entries []history.Entry
	if ofPlacement {
		revisions, err = askRevisions(ctx, c, query)
	} else {
		entries, err = historyEntries(ctx, c, query)
		// What a new leader has taken over stands behind what it had recorded itself.
		slices.SortStableFunc(entries, func(a, b history.Entry) int { return a.Time.Compare(b.Time) })
	}
	all := len(revisions) + len(entries)
	if err == nil && all == 0 {
		err = q.check(ctx, c)
	}
	if err != nil {
		return err
	}
	revisions, entries = last(q.newest, revisions), last(q.newest, entries)
	switch {
	case !f.IsText() && ofPlacement:
		return f.Write(out, output.ListOf(revisionsVersion, revisions))
	case !f.IsText():
		return f.Write(out, output.ListOf(historyVersion, entries))
	case ofPlacement:
		err = printRevisions(out, revisions, f)
	}
	p := output.PageOf(out)
	for _, e := range entries {
		if _, err = fmt.Fprintln(out, p.Fold(entryText(e), "    ")); err != nil {
			return err
		}
	}
	if len(revisions)+len(entries) < all {
		fmt.Fprintln(errOut, "older entries are not shown; --newest 0 shows all")
	}
	return err
}

// write writes the entries of a query as the daemon does.
func (q *historyQuery) write(ctx context.Context, c *client.Client, query url.Values, out io.Writer) error {
	entries, err := openHistory(ctx, c, query)
	if err != nil {
		return err
	}
	defer entries.Close()
	if _, err := io.Copy(out, entries); err != nil {
		return fmt.Errorf("the response ended early: %w", err)
	}
	return nil
}

// The schemas of the history in JSON. Fields of a version are never removed; new ones may be
// added.
const (
	historyVersion   = "gitfleet.dev/history/v1"
	revisionsVersion = "gitfleet.dev/revisions/v1"
)

func (q *historyQuery) query(now time.Time) (url.Values, error) {
	query := url.Values{"placement": {q.placement}, "cluster": {q.cluster}, "object": {q.object}, "namespace": {q.namespace}, "kind": {q.kind}}
	if q.since != "" {
		at, err := parseSince(q.since, now)
		if err != nil {
			return nil, err
		}
		query.Set("since", at.UTC().Format(time.RFC3339Nano))
	}
	switch {
	case q.newest < 0:
		return nil, fmt.Errorf("--newest %d: must not be negative", q.newest)
	case q.newest > 0 && !q.export:
		query.Set("newest", strconv.Itoa(q.newest+1)) // one more, to find out whether there are more
	}
	return query, nil
}

// parseSince parses a time, or a duration before now, which may have days.
func parseSince(text string, now time.Time) (time.Time, error) {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.Atoi(days); err == nil && n > 0 {
			return now.AddDate(0, 0, -n), nil
		}
	}
	if d, err := time.ParseDuration(text); err == nil && d > 0 {
		return now.Add(-d), nil
	}
	return time.Time{}, fmt.Errorf("--since %q: write 30m, 24h, 7d, or a time such as 2026-01-31T12:00:00Z", text)
}

// entryText formats an entry on one line.
func entryText(e history.Entry) string {
	parts := []string{e.Time.UTC().Format(time.RFC3339), output.Fit(string(e.Kind), 9)}
	for _, part := range []string{e.Placement, e.Cluster, e.Object} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	what := string(e.Event)
	if e.By != "" {
		what += " by " + e.By
	}
	if e.Revision != "" {
		what += " revision " + e.Revision
	}
	if e.Commit != "" {
		what += " " + output.ShortHash(e.Commit)
	}
	if who := cmp.Or(e.Signer, e.Author); who != "" {
		what += " " + personOf(who)
	}
	for _, part := range []string{e.Subject, e.Message} {
		if part != "" {
			what += ": " + part
		}
	}
	return output.Sanitize(strings.Join(append(parts, what), "  "))
}

// last returns the last of some items; all of them if n is zero.
func last[T any](n int, items []T) []T {
	if n == 0 {
		return items
	}
	return items[max(0, len(items)-n):]
}
