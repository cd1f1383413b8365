package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gitfleet/gitfleet/reconciler/history"
)

func newHistory() *cobra.Command {
	var at connection
	var q recall
	var output string
	cmd := &cobra.Command{
		Use:   "history [crp/NAME|rp/NAMESPACE/NAME]",
		Short: "Tell who did what, and when",
		Long: `History tells of a placement its revisions, the newest first: which commit
brought each, whose it is, when it began, how long it took until it was
available everywhere, and what became of it on each cluster.

Without a placement, or with --cluster, --object or --kind, it prints what
happened line by line, the oldest first: commits, placements, clusters, single
objects, and what persons asked for. --export writes the same as JSON lines.

The record is in the state directory of the daemon and outlives it; its size is
bounded by the setting history.maxSize.`,
		Example: `  gitfleet history crp/web
  gitfleet history --since 24h --cluster member-3
  gitfleet history --object deployment.apps/shop/web --kind object
  gitfleet history --export > history.jsonl`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if output != "table" && output != "wide" && output != "json" {
				return fmt.Errorf("-o %s: use table, wide or json", output)
			}
			if len(args) > 0 {
				var err error
				if q.placement, err = placementName(args[0]); err != nil {
					return err
				}
			}
			c, err := at.client()
			if err != nil {
				return err
			}
			return q.answer(cmd.Context(), c, output, cmd.OutOrStdout())
		},
	}
	at.bind(cmd.Flags())
	f := cmd.Flags()
	f.StringVar(&q.since, "since", "", "only what happened since: 30m, 24h, 7d, or a time such as 2026-01-31T12:00:00Z")
	f.StringVar(&q.cluster, "cluster", "", "only what happened on this cluster")
	f.StringVar(&q.object, "object", "", "only what happened to objects with this in their name, Kind.group/namespace/name")
	f.StringVar(&q.kind, "kind", "", "only one kind: commit, placement, cluster, object, member or action")
	f.IntVar(&q.newest, "newest", 0, "at most so many lines, the last ones (default 100, with --export all)")
	f.BoolVar(&q.export, "export", false, "write JSON lines, whole")
	f.StringVarP(&output, "output", "o", "table", "table, wide or json")
	return cmd
}

// A recall is what somebody wants to know of what happened.
type recall struct {
	placement, since, cluster, object, kind string
	newest                                  int
	export                                  bool
}

// fewLines is how many are printed if nobody says how many.
const fewLines = 100

func (q *recall) answer(ctx context.Context, c *client, output string, out io.Writer) error {
	query, err := q.query(time.Now())
	if err != nil {
		return err
	}
	if q.export {
		resp, err := c.do(ctx, http.MethodGet, "/history", query, nil)
		if err != nil {
			return noRecord(err)
		}
		defer resp.Body.Close()
		if _, err := io.Copy(out, resp.Body); err != nil {
			return fmt.Errorf("the answer broke off: %w", err)
		}
		return nil
	}
	if q.placement != "" && q.cluster == "" && q.object == "" && q.kind == "" {
		revisions, err := askRevisions(ctx, c, query)
		if err != nil {
			return err
		}
		if output == "json" {
			return writeJSON(out, revisions)
		}
		return printRevisions(out, revisions, output == "wide")
	}
	entries, err := c.history(ctx, query)
	if err != nil {
		return err
	}
	if output == "json" {
		return writeJSON(out, append([]history.Entry{}, entries...))
	}
	for _, e := range entries {
		if _, err := fmt.Fprintln(out, entryText(e)); err != nil {
			return err
		}
	}
	return nil
}

func (q *recall) query(now time.Time) (url.Values, error) {
	query := url.Values{}
	for name, value := range map[string]string{"placement": q.placement, "cluster": q.cluster, "object": q.object, "kind": q.kind} {
		if value != "" {
			query.Set(name, value)
		}
	}
	if q.since != "" {
		at, err := sinceWhen(q.since, now)
		if err != nil {
			return nil, err
		}
		query.Set("since", at.UTC().Format(time.RFC3339Nano))
	}
	switch {
	case q.newest < 0:
		return nil, fmt.Errorf("--newest %d: must be more than zero", q.newest)
	case q.newest > 0:
		query.Set("newest", strconv.Itoa(q.newest))
	case !q.export:
		query.Set("newest", strconv.Itoa(fewLines))
	}
	return query, nil
}

// sinceWhen reads a time, or how long ago it was; days may be given as well.
func sinceWhen(text string, now time.Time) (time.Time, error) {
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

// history returns the entries that a query asks for, the oldest first.
func (c *client) history(ctx context.Context, query url.Values) ([]history.Entry, error) {
	resp, err := c.do(ctx, http.MethodGet, "/history", query, nil)
	if err != nil {
		return nil, noRecord(err)
	}
	defer resp.Body.Close()
	var all []history.Entry
	for d := json.NewDecoder(resp.Body); ; {
		var e history.Entry
		if err := d.Decode(&e); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("read the daemon's answer: %w", err)
		}
		all = append(all, e)
	}
}

// noRecord says what it means if there is no such address.
func noRecord(err error) error {
	var answer *answerError
	if errors.As(err, &answer) && answer.code == http.StatusNotFound {
		return errors.New("this daemon keeps no history")
	}
	return err
}

// entryText is an entry on one line.
func entryText(e history.Entry) string {
	parts := []string{e.Time.UTC().Format(time.RFC3339), fit(string(e.Kind), 9)}
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
		what += " " + short(e.Commit)
	}
	if e.Author != "" {
		what += " " + personOf(e.Author)
	}
	for _, part := range []string{e.Subject, e.Message} {
		if part != "" {
			what += ": " + part
		}
	}
	return harmless(strings.Join(append(parts, what), "  "))
}

// personOf is an author without the address.
func personOf(author string) string {
	name, _, _ := strings.Cut(author, " <")
	return name
}
