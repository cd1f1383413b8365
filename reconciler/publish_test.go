package reconciler

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/reconciler/history"
	"github.com/gitfleet/gitfleet/reconciler/occurrence"
)

// What becomes of commits and rollouts, which clusters leave and what users do is logged, each with a line; what happens to objects and clusters is logged by agents.
func TestOccurrencesAreLogged(t *testing.T) {
	for want, o := range map[string]occurrence.Occurrence{
		`level=INFO msg="rollout started" placement=crp/web`:                                         {Entry: history.Entry{Placement: "crp/web"}, Rollout: occurrence.RolloutStarted},
		`level=INFO msg="rollout finished" placement=crp/web took=1m0s`:                              {Entry: history.Entry{Placement: "crp/web"}, Rollout: occurrence.RolloutFinished, RolloutTook: time.Minute},
		`level=WARN msg="rollout stopped" placement=crp/web cluster=east`:                            {Entry: history.Entry{Placement: "crp/web", Cluster: "east"}, Rollout: occurrence.RolloutStopped},
		`level=INFO msg=suspended placement=crp/web by=ada reason=INC-1`:                             {Entry: history.Entry{Kind: history.Action, Event: history.Suspended, Placement: "crp/web", By: "ada", Message: "INC-1"}},
		`level=INFO msg="stage of an update run rejected" placement=crp/web by=ada`:                  {Entry: history.Entry{Kind: history.Action, Event: history.Rejected, Placement: "crp/web", By: "ada"}},
		`level=INFO msg="suspension ended" object=Deployment.apps/web/one reason="it was suspended"`: {Entry: history.Entry{Kind: history.Action, Event: history.Ended, Object: "Deployment.apps/web/one", Message: "it was suspended"}},
		`level=INFO msg="commit in force" commit=c2 subject=fix objects=0 placements=0 clusters=1 took=1s`: {
			Entry: history.Entry{Kind: history.Commit, Event: history.InForce, Commit: "c2"}, LoadTook: time.Second,
			InForce: &hub.Snapshot{Commit: hub.Commit{Hash: "c2", Subject: "fix"}, Clusters: []*hub.Cluster{{}}},
		},
		`level=ERROR msg="commit refused" commit=c3 inForce=c2 err="two problems"`: {
			Entry:        history.Entry{Kind: history.Commit, Event: history.Refused, Commit: "c3", Message: "a problem and one more"},
			StaysInForce: "c2", Refused: errors.New("two problems"),
		},
		`level=ERROR msg="commit refused" commit=c1 inForce="" err="a problem"`:           {Entry: history.Entry{Kind: history.Commit, Event: history.Refused, Commit: "c1"}, Refused: errors.New("a problem")},
		`level=INFO msg="member renamed" from=east to=west`:                               {Entry: history.Entry{Kind: history.Member, Event: history.Left, Cluster: "east", Message: "it was renamed to west"}, RenamedTo: "west"},
		`level=WARN msg="cluster left the fleet" cluster=east reason="it did not answer"`: {Entry: history.Entry{Kind: history.Member, Event: history.Left, Cluster: "east", Message: "it did not answer"}},
		`level=INFO msg="cluster left the fleet" cluster=east`:                            {Entry: history.Entry{Kind: history.Member, Event: history.Left, Cluster: "east"}},
		"": {Entry: history.Entry{Kind: history.Cluster, Event: history.Available, Placement: "crp/web", Cluster: "east"}, Stage: occurrence.StageAvailable},
	} {
		var logged strings.Builder
		log := slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}}))
		if logOccurrence(log, &o); strings.TrimSpace(logged.String()) != want {
			t.Errorf("got  %s\nwant %s", logged.String(), want)
		}
	}
}
