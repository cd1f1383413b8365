package reconciler

import (
	"log/slog"
	"time"

	"github.com/gitfleet/gitfleet/reconciler/history"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/occurrence"
	"github.com/gitfleet/gitfleet/reconciler/status/event"
)

// addEvents adds the events for kubectl of occurrences to the ledger, with whose other changes they are saved.
func addEvents(l *ledger.Ledger, now time.Time, all ...occurrence.Occurrence) {
	l.AddEvents(event.Of(all, l, now))
}

// publish adds occurrences to the metrics, the traces, the history and the log. Those of a plan must be published only after it is
// saved, so that a crash does not repeat them.
func publish(cfg *Config, all ...occurrence.Occurrence) {
	cfg.Metrics.count(all)
	traceProgress(cfg.Traces, all)
	cfg.Record(occurrence.Entries(all)...)
	for i := range all {
		logOccurrence(cfg.Log, &all[i])
	}
}

// logOccurrence logs what happens to commits and rollouts, which clusters were renamed or have left the fleet, what users did
// and what has ended. Agents log what happens on their cluster.
func logOccurrence(log *slog.Logger, o *occurrence.Occurrence) {
	switch {
	case o.Refused != nil:
		log.Error("commit refused", "commit", o.Commit, "inForce", o.StaysInForce, "err", o.Refused)
	case o.InForce != nil:
		commit := o.InForce.Commit
		log.Info("commit in force", "commit", commit.Hash, "subject", commit.Subject,
			"objects", len(o.InForce.Objects), "placements", len(o.InForce.Placements), "clusters", len(o.InForce.Clusters), "took", o.LoadTook)
	case o.Rollout == occurrence.RolloutStopped:
		log.Warn("rollout stopped", attributes(o)...)
	case o.Rollout == occurrence.RolloutFinished:
		log.Info("rollout finished", append(attributes(o), "took", o.RolloutTook)...)
	case o.Rollout != "":
		log.Info("rollout "+string(o.Rollout), attributes(o)...)
	case o.Kind == history.Action:
		log.Info(actionText(o.Event), attributes(o)...)
	case o.RenamedTo != "":
		log.Info("member renamed", "from", o.Cluster, "to", o.RenamedTo)
	case o.Event == history.Left && o.Message != "": // it did not answer
		log.Warn("cluster left the fleet", attributes(o)...)
	case o.Event == history.Left:
		log.Info("cluster left the fleet", attributes(o)...)
	}
}

// attributes returns what a log line says of an occurrence.
func attributes(o *occurrence.Occurrence) (attrs []any) {
	for _, a := range []struct{ key, value string }{
		{"placement", o.Placement}, {"cluster", o.Cluster}, {"object", o.Object}, {"commit", o.Commit}, {"by", o.By}, {"reason", o.Message},
	} {
		if a.value != "" {
			attrs = append(attrs, a.key, a.value)
		}
	}
	return attrs
}

// actionText returns the log message for an action of a user, or for its end.
func actionText(event history.Event) string {
	switch event {
	case history.Ended:
		return "suspension ended"
	case history.Proceeded:
		return "resumed by a user"
	case history.Approved, history.Rejected:
		return "stage of an update run " + string(event)
	case history.Evicted:
		return "eviction ordered"
	case history.Adopted:
		return "fleet adopted"
	}
	return string(event)
}
