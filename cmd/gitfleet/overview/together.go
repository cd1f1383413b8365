package overview

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/gitfleet/gitfleet/reconciler/forecast"
)

// A group is what is the same on several clusters.
type group[T any] struct {
	of       T // on the first cluster
	clusters []string
	since    time.Time // the earliest
	differ   bool      // it has begun at different times
}

// together groups items with the same key, in the order of their first ones. describe returns the key of an item, its cluster,
// and since when it is so.
func together[T any](all []T, describe func(T) (key []string, cluster string, since time.Time)) []group[T] {
	var out []group[T]
	at := map[string]int{}
	for _, item := range all {
		parts, cluster, since := describe(item)
		key := strings.Join(parts, "\x00")
		i, known := at[key]
		if !known {
			at[key] = len(out)
			out = append(out, group[T]{item, []string{cluster}, since, false})
			continue
		}
		g := &out[i]
		g.clusters = append(g.clusters, cluster)
		g.differ = g.differ || !since.Equal(g.since)
		if since.Before(g.since) {
			g.since = since
		}
	}
	return out
}

func membersTogether(all []Member) []group[Member] {
	return together(all, func(m Member) ([]string, string, time.Time) {
		return []string{string(m.State), m.Reason}, m.Name, m.Since
	})
}

func deletionsTogether(all []Deletions) []group[Deletions] {
	return together(all, func(d Deletions) ([]string, string, time.Time) {
		return append([]string{d.Placement}, d.Objects...), d.Cluster, time.Time{}
	})
}

func driftsTogether(all []Drift) []group[Drift] {
	return together(all, func(d Drift) ([]string, string, time.Time) {
		return append([]string{d.Placement, d.Object, string(d.State), d.Message}, d.By...), d.Cluster, d.Since
	})
}

// names are the clusters, or the first of them and the number of others.
func (g *group[T]) names() string { return forecast.FewOf(g.clusters) }

// lasting returns for how long it has been so, at most.
func (t *textWriter) lasting(since time.Time, differ bool) string {
	if differ {
		return "up to " + t.span(since)
	}
	return t.span(since)
}

func (t *textWriter) span(since time.Time) string {
	return duration.HumanDuration(max(0, t.now.Sub(since)))
}
