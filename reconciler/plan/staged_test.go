package plan

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/test/world"
)

// The content in force has failed as long as a run with the same content is recorded as rolled back. What is to be undone then
// is everything since the last finished run, up to the newest commit that has brought the content.
func TestFailedContent(t *testing.T) {
	at := func(minute int) time.Time { return time.Unix(int64(60*minute), 0) }
	content := func(n string) placement.Revision {
		return placement.Revision{Commit: "commit-" + n, Hash: "content-" + n}
	}
	good := placement.Run{Name: "run-1", Content: content("1"), Started: at(1), Finished: at(2)}
	failed := placement.Run{Name: "run-2", Content: content("2"), Started: at(3), SupersededBy: "run-1", RolledBack: "no image"}
	fixed := placement.Run{Name: "run-3", Content: content("3"), Started: at(4), Finished: at(5)}
	again := ledger.Revised{Content: placement.Revision{Commit: "commit-4", Hash: "content-2"}}
	tests := map[string]struct {
		record      ledger.Placement
		fingerprint string
		want        string
	}{
		"it failed":             {ledger.Placement{Runs: []placement.Run{good, failed}}, "content-2", "run-2 at commit-2, back to run-1 at commit-1"},
		"other content":         {ledger.Placement{Runs: []placement.Run{good, failed}}, "content-3", ""},
		"it is allowed again":   {ledger.Placement{Runs: []placement.Run{good}}, "content-2", ""},
		"no run has finished":   {ledger.Placement{Runs: []placement.Run{failed}}, "content-2", ""},
		"it came back in Git":   {ledger.Placement{Runs: []placement.Run{good, failed, fixed}, Revisions: []ledger.Revised{{Content: content("2")}, {Content: content("3")}, again}}, "content-2", "run-2 at commit-4, back to run-3 at commit-3"},
		"the revision is older": {ledger.Placement{Runs: []placement.Run{good, failed}, Revisions: []ledger.Revised{{Content: content("1")}}}, "content-2", "run-2 at commit-2, back to run-1 at commit-1"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := ""
			if f := failedContent(&test.record, test.fingerprint); f != nil {
				got = f.Run.Name + " at " + f.Commit + ", back to " + f.Back.Name + " at " + f.Back.Content.Commit
			}
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// If Git goes back to the content to which the clusters have gone back, the run that brought it is in force, so that nothing is
// approved again.
func TestARunThatHasFinishedIsNotMadeAgain(t *testing.T) {
	run := func(name, content string, change func(r *placement.Run)) placement.Run {
		r := placement.Run{Name: name, Automatic: true, Content: placement.Revision{Hash: content}, Started: time.Unix(int64(len(name)), 0), Finished: time.Unix(100, 0)}
		change(&r)
		return r
	}
	same := func(*placement.Run) {}
	good := run("run", "one", same)
	for name, test := range map[string]struct {
		runs []placement.Run
		want string
	}{
		"it was rolled back":   {[]placement.Run{good, run("run-2", "two", func(r *placement.Run) { r.SupersededBy, r.Finished = "run", time.Time{} })}, "run"},
		"another is under way": {[]placement.Run{good, run("run-2", "two", func(r *placement.Run) { r.Finished = time.Time{} })}, ""},
		"another has finished": {[]placement.Run{good, run("run-2", "two", same)}, ""},
		"it has not finished":  {[]placement.Run{run("run", "one", func(r *placement.Run) { r.Finished = time.Time{} })}, ""},
		"it was committed":     {[]placement.Run{run("run", "one", func(r *placement.Run) { r.Automatic = false })}, ""},
		"there is none":        {nil, ""},
	} {
		if got := finishedWith(test.runs, "one"); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// A run of a ResourcePlacement begins once the namespace is on all clusters on which another placement creates it. Otherwise the
// clusters of a later stage could have it first, and the earlier stage would be skipped as one without clusters.
func TestRunsWaitForTheirNamespace(t *testing.T) {
	s := newScene(t)
	files := world.Files(t, "clusters a/stage=canary b/stage=all\nnamespace shop\nplace shop\nconfigmap shop/one\n")
	files["api.yaml"] = &fstest.MapFile{Data: []byte(`
{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ResourcePlacement, metadata: {name: api, namespace: shop}, spec: {resourceSelectors: [{group: "", version: v1, kind: ConfigMap, name: one}], strategy: {type: External}}}
---
{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: StagedUpdateStrategy, metadata: {name: slow, namespace: shop}, spec: {stages: [{name: canary, labelSelector: {matchLabels: {stage: canary}}}, {name: all, labelSelector: {matchLabels: {stage: all}}}]}}
---
{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: StagedUpdateRun, metadata: {name: api-1, namespace: shop}, spec: {placementName: api, stagedRolloutStrategyName: slow, state: Run}}
`)}
	snapshot, err := s.loader.Load(hub.Commit{Hash: "v1", Time: s.in.Now}, files)
	if err != nil {
		t.Fatal(err)
	}
	s.in.InForce = snapshot
	run := func(on ...string) (string, []placement.Run) {
		for _, name := range []string{"a", "b"} {
			seen := protocol.ClusterSeen{Cluster: name, At: s.in.Now, Healthy: true, Properties: map[string]string{}, Namespaces: []string{"default"}}
			if slices.Contains(on, name) {
				seen.Namespaces = append(seen.Namespaces, "shop")
			}
			s.in.Ledger.Fold(seen)
		}
		s.do([]string{"plan"})
		key := api.PlacementKey{Namespace: "shop", Name: "api"}
		p := s.last.Placement(key)
		return p.RunPending, p.Record.Runs
	}
	if why, runs := run(); why != "it waits for clusters that the policy would choose and that cannot be used: a, b" || len(runs) > 0 {
		t.Errorf("the namespace is nowhere: %q %+v", why, runs)
	}
	if why, runs := run("b"); why != "it waits for the namespace shop, which is about to be created on a" || len(runs) > 0 {
		t.Errorf("the namespace is on one cluster: %q %+v", why, runs)
	}
	if why, runs := run("a", "b"); why != "" || len(runs) != 1 || !slices.Equal(runs[0].Stages[0].Clusters, []string{"a"}) || runs[0].Turn() != 0 {
		t.Errorf("the namespace is on both: %q %+v", why, runs)
	}
}

// After the ledger was lost, the newest committed run is in force, and one for every content only if that has changed since. Which run is
// the newest depends on the commits in which they were started, and not on their names.
func TestTheNewestRunAfterALoss(t *testing.T) {
	const hubText = "clusters a\nnamespace web\nplace web external\nstrategy slow canary/name=a\nrun web-b of web by slow\nrun web-a of web by slow\n"
	at := func(hash string, hours time.Duration) hub.Commit {
		return hub.Commit{Hash: hash, Time: noon.Add(hours * time.Hour)}
	}
	changed := func(appeared map[string]hub.Commit) func(*Input) {
		return func(in *Input) { in.FirstPlan, in.InForce.RunHistory = true, histories(appeared) }
	}
	built := func(in *Input) {
		changed(map[string]hub.Commit{})(in)
		for _, r := range in.InForce.Runs {
			r.Origin.Kustomization = "kustomization.yaml"
		}
	}
	for name, test := range map[string]struct {
		text   string
		change func(*Input)
		want   string
	}{
		"the ledger was not lost":     {hubText, func(*Input) {}, "web-b"},
		"by the commits":              {hubText, changed(map[string]hub.Commit{"web-a": at("v1", 0), "web-b": at("v1", -1)}), "web-a"},
		"one is too old to be found":  {hubText, changed(map[string]hub.Commit{"web-a": at("v1", 0)}), "web-a"},
		"a stopped one counts":        {hubText + "run web-c of web by slow Stop\n", changed(map[string]hub.Commit{"web-a": at("v1", 0), "web-c": at("v1", 1)}), "web-c"},
		"one that has not begun":      {hubText + "run web-c of web by slow Initialize\n", changed(map[string]hub.Commit{"web-a": at("v1", 0), "web-c": at("v1", 1)}), "web-a"},
		"its commit has to be loaded": {hubText, changed(map[string]hub.Commit{"web-a": at("v0", 0)}), emptyLedger + ", and commit v0, in which run web-a appeared, is being loaded"},
		"its commit cannot be loaded": {hubText, func(in *Input) {
			changed(map[string]hub.Commit{"web-a": at("v0", 0)})(in)
			in.Lost["v0"] = errors.New("no such object")
		}, emptyLedger + ", and commit v0, in which run web-a appeared, cannot be loaded, which is retried; or commit a run with another name: no such object"},
		"one that has not begun has to be loaded": {hubText + "run web-c of web by slow Initialize\n", changed(map[string]hub.Commit{"web-a": at("v1", 0), "web-c": at("v0", 1)}),
			emptyLedger + ", and commit v0, in which run web-c appeared, is being loaded"},
		"no commit of any is found":     {hubText, changed(map[string]hub.Commit{}), "web-b: " + emptyLedger + ", and the commit in which it appeared is too old to be found"},
		"the history cannot be read":    {hubText, func(in *Input) { changed(nil)(in); in.InForce.RunHistoryErr = errors.New("no such object") }, emptyLedger + ", and the Git history could not be read; retrying: no such object"},
		"the history has not been read": {hubText, changed(nil), emptyLedger + ", and the Git history has not been read"},
		"a newer one was started before": {hubText, func(in *Input) {
			changed(map[string]hub.Commit{"web-a": at("v1", 0), "web-b": at("v1", 1)})(in)
			a := api.ID{Group: api.PlacementGroup, Kind: "ClusterStagedUpdateRun", Name: "web-a"}
			in.InForce.RunHistory[a] = hub.RunHistory{Appeared: at("v1", 0), Started: at("v1", 2)}
		}, "web-a"},
		"kustomizations build them all": {hubText, func(in *Input) { built(in); in.Rebuilt = true }, "web-b: " + emptyLedger + ", and of a run that a kustomization builds it cannot be found in which commit it appeared"},
		"it is the first start":         {hubText, built, "web-b"},
		"by the number of a content":    {hubText + "run web-c of web by slow Run 0\n", changed(map[string]hub.Commit{"web-c": at("v1", 0)}), "web-c: " + emptyLedger + ", and with it which content has the number 0"},
	} {
		s := newScene(t)
		s.commit("v1", nil, []byte(test.text))
		test.change(&s.in)
		s.do([]string{"seen", "a"})
		s.do([]string{"plan"})
		p := s.last.Placements.At(0)
		got := []string{p.RunPending}
		for _, r := range p.Record.Runs {
			switch {
			case r.Failed != "":
				got = append(got, r.Name+": "+r.Failed)
			case !r.Started.IsZero() && r.SupersededBy == "":
				got = append(got, r.Name)
			}
		}
		if got := strings.TrimSpace(strings.Join(got, " ")); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// histories returns the histories of runs that appeared in certain commits, by name, and were started at once.
func histories(appeared map[string]hub.Commit) map[api.ID]hub.RunHistory {
	if appeared == nil {
		return nil
	}
	out := map[api.ID]hub.RunHistory{}
	for name, c := range appeared {
		out[api.ID{Group: api.PlacementGroup, Kind: "ClusterStagedUpdateRun", Name: name}] = hub.RunHistory{Appeared: c, Started: c}
	}
	return out
}

// A restart after the ledger was lost, before a run is recorded again, is no reason for a run to bring newer content than it had. A run that
// is committed meanwhile is newer than those that Git had then, and has the content in force.
func TestARestartAfterALossBeforeARunIsRecorded(t *testing.T) {
	const hubText = "clusters a\nnamespace web\nconfigmap web/one\nplace web external\nstrategy slow canary/name=a\nrun web-z of web by slow\n"
	for name, test := range map[string]struct{ text, want string }{
		"no other run":    {hubText + "configmap web/two\n", "web-z at v1"},
		"a newer run":     {hubText + "configmap web/two\nrun web-a of web by slow\n", "web-a at v3"},
		"its run is gone": {strings.ReplaceAll(hubText, "run web-z", "run web-y"), "web-y at v3"},
	} {
		s := newScene(t)
		s.commit("v1", nil, []byte(hubText))
		s.commit("v2", nil, []byte(hubText+"configmap web/two\n"))
		history := histories(map[string]hub.Commit{"web-z": {Hash: "v1", Time: noon}})
		s.in.InForce.RunHistory, s.in.FirstPlan = history, true
		s.do([]string{"plan"}) // no cluster has answered yet
		s.do([]string{"restart"})
		s.commit("v3", nil, []byte(test.text))
		s.in.InForce.RunHistory = history
		s.do([]string{"seen", "a"})
		s.do([]string{"plan"})
		s.do([]string{"load", "v1"})
		s.do([]string{"plan"})
		record, got := s.last.Placements.At(0).Record, ""
		for _, r := range record.Runs {
			if !r.Started.IsZero() && r.SupersededBy == "" {
				got = r.Name + " at " + r.Content.Commit
			}
		}
		if got != test.want || len(record.LostRuns) > 0 {
			t.Errorf("%s: %q, want %q; lost runs %v", name, got, test.want, record.LostRuns)
		}
	}
}

// The lost runs are recorded in the first plan, also of a placement that cannot be planned yet.
func TestLostRunsOfAPlacementThatIsNotPlanned(t *testing.T) {
	const hubText = "clusters a\nnamespace web\nplace web of web external\nstrategy slow canary/name=a\nrun web-z of web by slow\n"
	for name, prepare := range map[string]func(s *scene){
		"planning it panics": func(s *scene) {
			s.commit("v1", nil, []byte(hubText))
			s.do([]string{"panic", "web"})
		},
		"planning it panics, and it is on a cluster": func(s *scene) {
			s.commit("v1", nil, []byte(hubText))
			s.in.Ledger.SetPlacement(api.PlacementKey{Name: "web"}, ledger.Placement{Rebuilt: true})
			s.in.Ledger.Bind(api.PlacementKey{Name: "web"}, placement.Binding{Cluster: "a", Assigned: placement.Revision{Commit: "v1", Hash: "one"}})
			s.do([]string{"panic", "web"})
		},
		"it may be another one under a new name": func(s *scene) {
			s.commit("v0", nil, []byte("clusters a\nnamespace web\nplace old of web\n"))
			s.do([]string{"seen", "a"})
			s.do([]string{"plan"})
			s.do([]string{"done"})
			s.do([]string{"plan"})
			s.do([]string{"forget"})
			s.commit("v1", nil, []byte(hubText))
			delete(s.in.Past, "v0")
		},
	} {
		s := newScene(t)
		prepare(s)
		s.in.FirstPlan = true
		s.do([]string{"plan"})
		p := s.last.Placement(api.PlacementKey{Name: "web"})
		if p.InternalError == "" && p.Unclear == "" {
			t.Errorf("%s: it is planned", name)
		}
		s.do([]string{"mend"})
		s.do([]string{"restart"})
		s.do([]string{"plan"})
		if again := s.last.Placement(p.Key); again.Unclear != p.Unclear {
			t.Errorf("%s: after a restart it is %q, not %q", name, again.Unclear, p.Unclear)
		}
		if p.Unclear != "" {
			s.do([]string{"load", "v0"})
			if got := renamesOf(s.resolve()); got != "old>web" {
				t.Errorf("%s: the renames are %s", name, got)
			}
		}
		if record := s.in.Ledger.Placement(p.Key); len(record.Runs) > 0 || !slices.Equal(record.LostRuns, []string{"web-z"}) {
			t.Errorf("%s: lost runs %v, and the runs %+v", name, record.LostRuns, record.Runs)
		}
	}
}

// A lost run counts as long as Git has it.
func TestLostRunsThatAreGone(t *testing.T) {
	const hubText = "clusters a\nnamespace web\nplace web external\nstrategy slow canary/name=a\nrun web-y of web by slow\nrun web-z of web by slow\n"
	for name, test := range map[string]struct {
		text string
		want []string
	}{
		"nothing has changed":      {hubText, []string{"web-y", "web-z"}},
		"one is deleted":           {strings.Replace(hubText, "run web-y of web by slow\n", "", 1), []string{"web-z"}},
		"the placement is deleted": {"clusters a\nnamespace web\n", nil},
	} {
		s := newScene(t)
		s.commit("v1", nil, []byte(hubText))
		s.in.FirstPlan = true
		s.do([]string{"plan"})
		s.commit("v2", nil, []byte(test.text))
		s.do([]string{"plan"})
		var got []string
		if record := s.in.Ledger.Placement(api.PlacementKey{Name: "web"}); record != nil {
			got = record.LostRuns
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: lost runs %v, want %v", name, got, test.want)
		}
	}
}

// How many unreachable and failed clusters a run does not wait for is what its strategy said when it was initialised.
func TestARunRecordsHowManyClustersItDoesNotWaitFor(t *testing.T) {
	s := newScene(t)
	load := func(commit, perStage string) {
		files := world.Files(t, "clusters a b\nnamespace web\nplace web external\nrun web-a of web by slow\n")
		files["strategy.yaml"] = &fstest.MapFile{Data: []byte(`{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ClusterStagedUpdateStrategy,
  metadata: {name: slow, annotations: {gitfleet.dev/max-unreachable-per-stage: "` + perStage + `", gitfleet.dev/max-unreachable-per-run: "1",
    gitfleet.dev/max-failed-per-stage: "` + perStage + `", gitfleet.dev/max-failed-per-run: "2"}}, spec: {stages: [{name: all, labelSelector: {}}]}}`)}
		snapshot, err := s.loader.Load(hub.Commit{Hash: commit, Time: s.in.Now}, files)
		if err != nil {
			t.Fatal(err)
		}
		s.in.InForce = snapshot
		s.do([]string{"seen", "a", "b"})
		s.do([]string{"plan"})
	}
	for i, perStage := range []string{"10%", "20%"} {
		load("v"+strconv.Itoa(i), perStage)
		if r := s.last.Placements.At(0).Record.Runs[0]; r.UnreachablePerStage != "10%" || r.UnreachablePerRun != "1" || r.FailedPerStage != "10%" || r.FailedPerRun != "2" {
			t.Errorf("recorded %q, %q, %q and %q", r.UnreachablePerStage, r.UnreachablePerRun, r.FailedPerStage, r.FailedPerRun)
		}
	}
}
