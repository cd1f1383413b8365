package reconciler

import (
	"log/slog"

	"github.com/gitfleet/gitfleet/reconciler/history"
)

// publish adds occurrences to the metrics, the traces, the history and the log. Those of a plan must be published only after it is
// saved, so that a crash does not repeat them.
func publish(cfg *Config, all ...occurrence) {
	cfg.Metrics.count(all)
	traceProgress(cfg.Traces, all)
	cfg.Record(entriesOf(all)...)
	for i := range all {
		logOccurrence(cfg.Log, &all[i])
	}
}

// logOccurrence logs what happens to commits and rollouts, which clusters were renamed or have left the fleet, what users did
// and what has ended. Agents log what happens on their cluster.
func logOccurrence(log *slog.Logger, o *occurrence) {
	switch {
	case o.refused != nil:
		log.Error("commit refused", "commit", o.Commit, "inForce", o.staysInForce, "err", o.refused)
	case o.inForce != nil:
		commit := o.inForce.Commit
		log.Info("commit in force", "commit", commit.Hash, "subject", commit.Subject,
			"objects", len(o.inForce.Objects), "placements", len(o.inForce.Placements), "clusters", len(o.inForce.Clusters), "took", o.loadTook)
	case o.rollout == rolloutStopped:
		log.Warn("rollout stopped", o.attributes()...)
	case o.rollout == rolloutFinished:
		log.Info("rollout finished", append(o.attributes(), "took", o.rolloutTook)...)
	case o.rollout != "":
		log.Info("rollout "+string(o.rollout), o.attributes()...)
	case o.Kind == history.Action:
		log.Info(actionText(o.Event), o.attributes()...)
	case o.renamedTo != "":
		log.Info("member renamed", "from", o.Cluster, "to", o.renamedTo)
	case o.Event == history.Left && o.Message != "": // it did not answer
		log.Warn("cluster left the fleet", o.attributes()...)
	case o.Event == history.Left:
		log.Info("cluster left the fleet", o.attributes()...)
	}
}

// attributes are what a log line says of an occurrence.
func (o *occurrence) attributes() (attrs []any) {
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
