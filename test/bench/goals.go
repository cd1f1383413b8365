package main

import "slices"

// goals are all performance goals. A new goal needs a line here, and a scene or a benchmark if
// nothing measures its figure yet.
var goals = slices.Concat(wholeGoals, memoryGoals, scaleGoals, turnGoals, gitGoals, hubGoals, placementGoals, simulationGoals, readingGoals, forgeGoals, runGoals)

// gitfleet as a whole, on real API servers.
var wholeGoals = []goal{
	{name: "sync/requests-per-object", value: []figure{of("sync", "requests per object, 1 member")},
		unit: "requests", limit: 1.05, why: "500 new objects on one member: one apply each, and a few lists"},
	{name: "sync/requests-per-object-4-members", value: []figure{of("sync", "requests per object, 4 members")},
		unit: "requests", limit: 1.05, why: "500 new objects on four members"},
	{name: "sync/time-to-bare-client", value: []figure{of("sync", "ms, 1 member")}, per: []figure{of("sync", "bare ms, 1 member")},
		unit: "x", limit: 1.15, why: "from commit seen to applied, compared with a client that sends the same objects, 8 at a time, and does nothing else"},
	{name: "sync/time-to-bare-client-4-members", value: []figure{of("sync", "ms, 4 members")}, per: []figure{of("sync", "bare ms, 4 members")},
		unit: "x", limit: 1.15, why: "the same on four members at once"},
	{name: "sync/time-to-staged-apply", value: []figure{of("sync", "ms, 1 member")}, per: []figure{of("sync", "staged ms, 1 member")},
		unit: "x", limit: 1, why: "from commit seen to applied, compared with ApplyAllStaged of Flux's ResourceManager, which tries each object before it applies it"},
	{name: "sync/time-to-staged-apply-4-members", value: []figure{of("sync", "ms, 4 members")}, per: []figure{of("sync", "staged ms, 4 members")},
		unit: "x", limit: 1, why: "the same on four members at once"},
	{name: "change/object-writes", value: []figure{of("change", "object writes")},
		unit: "requests", limit: 4, why: "a commit that changes one object on four members: the most of 30 commits"},
	{name: "change/inventory-writes", value: []figure{of("change", "inventory writes")},
		unit: "requests", limit: 4, why: "the same"},
	{name: "change/time-to-budget", value: []figure{of("change", "ms")}, per: []figure{of("change", "budget ms")},
		unit: "x", limit: 1, why: "from commit seen to applied; the budget is three times what a bare client needs for one PATCH to each of the four members at once, plus 50 ms"},
	{name: "repair/requests", value: []figure{of("repair", "object writes")},
		unit: "requests", limit: 1, why: "one PATCH restores an object that was changed or deleted: the most of 40"},
	{name: "repair/edited-to-bare-patch", value: []figure{of("repair", "edit ms")}, per: []figure{of("repair", "bare patch ms")},
		unit: "x", limit: 3, why: "median, from the answer to the foreign write to the answer to the repair"},
	{name: "repair/deleted-to-bare-patch", value: []figure{of("repair", "delete ms")}, per: []figure{of("repair", "bare patch ms")},
		unit: "x", limit: 3, why: "the same for a deleted object"},
	{name: "daemon/first-sync-requests-per-object", value: []figure{of("daemon", "first sync requests per object")},
		unit: "requests", limit: 1.05, why: "the built binary, by the members' audit logs: 500 objects on four members"},
	{name: "daemon/unchanged-requests", value: []figure{of("daemon", "unchanged requests")},
		unit: "requests", limit: 0, why: "two minutes without changes, with several probes, observations and turns: watches and probes only"},
	{name: "daemon/restart-writes", value: []figure{of("daemon", "restart writes")},
		unit: "requests", limit: 0, why: "a restart without changes, 2,000 objects: lists only"},
	{name: "daemon/memory", value: []figure{of("daemon", "memory MiB")},
		unit: "MiB", limit: 80, why: "obtained from the operating system after the first sync of 500 objects on four members, without the binary"},
}

// The built binary with simulated members.
var memoryGoals = []goal{
	{name: "memory/per-member", value: []figure{of("memory", "KiB per member")},
		unit: "KiB", limit: 160, why: "the built binary with 1,000 simulated members of 100 objects, and with 100 of 1,000: live heap and stacks beyond those for one member"},
	{name: "memory/charts", value: []figure{of("charts", "memory MiB")},
		unit: "MiB", limit: 200, why: "obtained from the operating system with 50 charts of 40 objects and 6 definitions loaded for four clusters, without the binary"},
	{name: "memory/charts-most", value: []figure{of("charts", "most MiB")},
		unit: "MiB", limit: 200, why: "the same at most, from the start until the commit is in force"},
	{name: "memory/per-object", value: []figure{of("memory", "bytes per object")},
		unit: "B", limit: 200, why: "the same, for each object on each member"},
}

// The built binary with every placement on every member, each with a Namespace and a ConfigMap, on simulated members. A
// scene ends after four minutes, also if something is still missing.
var scaleGoals = slices.Concat(goalsOfCrowd("scale", "scale/300-members", "300 members with 100 placements, 60,000 objects", 1.5, 200, 300),
	goalsOfCrowd("scale-large", "scale/1000-members", "1,000 members with 100 placements, 200,000 objects", 1.5, 500, 800),
	[]goal{
		{name: "scale/1000-members/change-to-budget", value: []figure{of("scale-large", "change ms")}, per: []figure{of("scale-large", "change budget ms")},
			unit: "x", limit: 1, why: "a commit that changes one ConfigMap on 1,000 members at once, from commit seen to the write on the last of them; the budget is 1.3 times what a client with open connections takes for the same requests, plus 200 ms"},
		{name: "scale/10000-members/missing", value: []figure{of("settled-huge", "missing")},
			unit: "entries", limit: 0, why: "10,000 members with 20 placements, 400,000 objects: what is not available after ten minutes"},
		{name: "scale/10000-members/resident", value: []figure{of("settled-huge", "resident MiB")},
			unit: "MiB", limit: 2048, why: "resident two minutes after all of it is available"},
		{name: "scale/10000-members/idle-CPU", value: []figure{of("settled-huge", "idle CPU %")},
			unit: "%", limit: 5, why: "of one core, in a minute without changes"},
	})

func goalsOfCrowd(scene, name, size string, times, resident, most float64) []goal {
	return []goal{
		{name: name + "/missing", value: []figure{of(scene, "missing")},
			unit: "entries", limit: 0, why: size + ", from nothing: what is not available at the end"},
		{name: name + "/time-to-bare-client", value: []figure{of(scene, "s")}, per: []figure{of(scene, "bare s")},
			unit: "x", limit: times, why: "from the start to available everywhere, compared with a client that sends the same objects, 8 at a time to each member"},
		{name: name + "/cpu-to-bare-client", value: []figure{of(scene, "CPU s")}, per: []figure{of(scene, "bare CPU s")},
			unit: "x", limit: times, why: "the same for the processor time of both processes"},
		{name: name + "/applies-per-object", value: []figure{of(scene, "applies per object")},
			unit: "requests", limit: 1.05, why: "one for each object, and a few on each member for the claim, the announcement and the inventories"},
		{name: name + "/resident", value: []figure{of(scene, "resident MiB")},
			unit: "MiB", limit: resident, why: "resident once memory is returned after the end"},
		{name: name + "/most-resident", value: []figure{of(scene, "most resident MiB")},
			unit: "MiB", limit: most, why: "resident at most"},
		{name: name + "/per-entry", value: []figure{of(scene, "live KiB per entry")},
			unit: "KiB", limit: 1.5, why: "live heap by placements on clusters, everything included"},
		{name: name + "/metrics", value: []figure{of(scene, "metrics ms")},
			unit: "ms", limit: 500, why: "the slowest scrape meanwhile"},
		{name: name + "/kubectl", value: []figure{of(scene, "kubectl ms")},
			unit: "ms", limit: 500, why: "the slowest kubectl get crp meanwhile"},
		{name: name + "/status", value: []figure{of(scene, "status ms")},
			unit: "ms", limit: 500, why: "the slowest gitfleet status meanwhile, with the start of the program"},
	}
}

// A turn of the loop over 1,000 clusters and 1,000 placements with 100 clusters each.
const (
	statusPkg = "./reconciler/status"
	ledgerPkg = "./reconciler/ledger"
)

var turnGoals = []goal{
	{name: "turn/one-report", value: []figure{ns(statusPkg, "TurnOneReport/clusters=1000/placements=1000")},
		scale: 1e-6, unit: "ms", limit: 1, why: "one member reports on one placement: fold, plan and report"},
	{name: "turn/flood", value: []figure{ns(statusPkg, "TurnFlood")},
		scale: 1e-6, unit: "ms", limit: 5, why: "one member reports on 20 placements of 1,000 clusters each"},
	{name: "turn/staged-runs", value: []figure{ns(statusPkg, "TurnStagedRuns")},
		scale: 1e-6, unit: "ms", limit: 20, why: "the same while staged update runs of 100 placements are under way, on 100 of 1,000 clusters each"},
	{name: "turn/one-report-allocations", value: []figure{allocated(statusPkg, "TurnOneReport/clusters=1000/placements=1000")},
		per: []figure{allocated(statusPkg, "TurnOneReport/clusters=250/placements=250")}, unit: "x", limit: 1.5, why: "a fleet four times as large needs no more memory for the same turn"},
	{name: "review/pull-request-to-commit", value: []figure{ns("./reconciler/review", "ChangeOfOneFile/of=pull-request")}, per: []figure{ns("./reconciler/review", "ChangeOfOneFile/of=commit")},
		unit: "x", limit: 2, why: "the plan of a pull request that changes one file of a hub with 1,000 placements on 100 clusters, compared with that of a commit with the same change"},
	{name: "turn/full", value: []figure{ns("./reconciler/plan", "ResolveAll/clusters=1000/placements=1000"), ns(statusPkg, "BuildAll")},
		scale: 1e-9, unit: "s", limit: 2, why: "plan and report of everything, from the ledger alone"},
	{name: "ledger/save-growth", value: []figure{ns(ledgerPkg, "Save/entries=100000/changed=1")}, per: []figure{ns(ledgerPkg, "Save/entries=1000/changed=1")},
		unit: "x", limit: 3, why: "saving one change among a hundred times as many entries: their tree is a little deeper"},
	{name: "ledger/save-allocations", value: []figure{allocated(ledgerPkg, "Save/entries=100000/changed=1")}, per: []figure{allocated(ledgerPkg, "Save/entries=1000/changed=1")},
		unit: "x", limit: 3, why: "the same for the memory that it allocates"},
}

// The repository: 10,000 files in 200 directories.
const gitPkg = "./gitsource"

var gitGoals = []goal{
	{name: "git/poll-to-git", value: []figure{ns(gitPkg, "UnchangedPoll/files=10000/gitfleet")}, per: []figure{ns(gitPkg, "UnchangedPoll/files=10000/git")},
		unit: "x", limit: 1, why: "a poll that finds no change is one listing of refs, as git ls-remote is"},
	{name: "git/fetch-to-git", value: []figure{ns(gitPkg, "FetchOneCommit/files=10000/gitfleet")}, per: []figure{ns(gitPkg, "FetchOneCommit/files=10000/git")},
		unit: "x", limit: 1, why: "fetching one commit takes no longer than git does"},
	{name: "git/diff", value: []figure{ns(gitPkg, "DiffTwoCommits/files=10000/cold")},
		scale: 1e-6, unit: "ms", limit: 1, why: "the diff of two commits with empty caches"},
	{name: "git/cold-start-to-git-and-yaml",
		value: []figure{ns(gitPkg, "ColdClone/files=10000/gitfleet"), ns(hubPkg, "ColdLoad/files=10000")},
		per:   []figure{ns(gitPkg, "ColdClone/files=10000/git"), ns(hubPkg, "PlainYAML/files=10000")},
		unit:  "x", limit: 2, why: "clone and load, compared with git clone --bare and the plain YAML library"},
}

// Loading a commit.
const hubPkg = "./gitsource/hub"

// overlaysFrom is a figure of the loads from nothing of a fleet with overlays, and of one without.
func overlaysFrom(name string) figure {
	return figure{pkg: hubPkg, bench: "Overlays/cold", name: name}
}

var hubGoals = []goal{
	{name: "hub/one-file-commit-to-cold-load", value: []figure{ns(hubPkg, "OneFileCommit/files=10000")}, per: []figure{ns(hubPkg, "ColdLoad/files=10000")},
		unit: "x", limit: 0.02, why: "a commit of one file costs work for one file"},
	{name: "hub/growth", value: []figure{ns(hubPkg, "ColdLoad/files=50000")}, per: []figure{ns(hubPkg, "ColdLoad/files=10000")},
		unit: "x", limit: 7.5, why: "five times the files take five times as long; half as much again is tolerance"},
	{name: "hub/unchanged-kustomization", value: []figure{ns(hubPkg, "Kustomization/unchanged")}, per: []figure{ns(hubPkg, "Kustomization/built")},
		unit: "x", limit: 0.05, why: "a kustomization of 100 resources is not built again"},
	{name: "hub/chart", value: []figure{{pkg: hubPkg, bench: "Chart", name: "more-ms/rendering"}},
		unit: "ms", limit: 15, why: "a rendering of a chart of 40 objects, four for 1,000 clusters, beside what Helm's own engine takes for it"},
	{name: "hub/overlays-to-roots", value: []figure{overlaysFrom("overlays-ns")}, per: []figure{overlaysFrom("roots-ns")},
		unit: "x", limit: 1.1, why: "1,000 kustomizations whose overlays are for 30 clusters load cold as fast as if each was built once as a root of the hub; a tenth is tolerance"},
	{name: "hub/one-overlay-to-cold-load", value: []figure{ns(hubPkg, "Overlays/change")}, per: []figure{overlaysFrom("overlays-ns")},
		unit: "x", limit: 0.1, why: "a commit that changes one overlay builds that overlay only"},
	{name: "hub/memory", value: []figure{of("load", "memory MiB")},
		unit: "MiB", limit: 100, why: "obtained from the operating system with 10,000 files loaded, without the binary"},
}

// Planning, on one core.
const (
	placementPkg = "./placement"
	rolloutPkg   = "./placement/rollout"
	workPkg      = "./placement/work"
)

var placementGoals = []goal{
	{name: "placement/everything", value: []figure{ns(placementPkg, "ScheduleAll/clusters=1000/placements=1000")},
		scale: 1e-9, unit: "s", limit: 5, why: "1,000 placements on 1,000 clusters from scratch"},
	{name: "placement/one", value: []figure{ns(placementPkg, "ScheduleOne/PickN,2 constraints/new")},
		scale: 1e-6, unit: "ms", limit: 20, why: "a change of one placement with the most expensive policy"},
	{name: "placement/spread", value: []figure{ns(placementPkg, "Spread/regions and zones/clusters=10000/n=100")},
		scale: 1e-6, unit: "ms", limit: 500, why: "one PickN with two spread constraints on 10,000 clusters"},
	{name: "placement/spread-worst", value: []figure{ns(placementPkg, "Spread/regions and racks/clusters=10000/n=1000")},
		scale: 1e-6, unit: "ms", limit: 500, why: "the same with each cluster in its own topology domain"},
	{name: "placement/select", value: []figure{ns(placementPkg, "Select/Select/placements=1000/objects=10000")},
		scale: 1e-9, unit: "s", limit: 1, why: "1,000 placements select from 10,000 objects"},
	{name: "placement/growth-with-placements", value: []figure{ns(placementPkg, "ScheduleAll/clusters=1000/placements=1000")},
		per: []figure{ns(placementPkg, "ScheduleAll/clusters=1000/placements=250")}, unit: "x", limit: 6, why: "four times the placements take four times as long; half as much again is tolerance"},
	{name: "placement/growth-with-clusters", value: []figure{ns(placementPkg, "ScheduleAll/clusters=1000/placements=1000")},
		per: []figure{ns(placementPkg, "ScheduleAll/clusters=500/placements=1000")}, unit: "x", limit: 3, why: "twice the clusters, with sorting; half as much again is tolerance"},
	{name: "rollout/rolling", value: []figure{ns(rolloutPkg, "Next/rolling")},
		scale: 1e-6, unit: "ms", limit: 20, why: "one placement on 1,000 clusters, its share of two seconds for 100,000 bindings"},
	{name: "work/next-turn", value: []figure{ns(workPkg, "For/a tenth overridden by label/next turn")},
		scale: 1e-9, unit: "s", limit: 0.5, why: "100,000 bindings rendered again, a quarter of a full turn's two seconds"},
}

// The simulation of fleets, on one core.
var simulationGoals = []goal{
	{name: "simulation/step", value: []figure{{pkg: "./test/scenario/simulation", bench: "Scenarios", name: "ns/step"}},
		scale: 1e-6, unit: "ms", limit: 2, why: "a commit, an outage or a crash with all its consequences: at least 500 a second"},
}

// Requests to the hub API, with 1,000 placements on 100 clusters each.
const kubePkg = "./reconciler/server/kubeapi"

var readingGoals = []goal{
	{name: "reading/list", value: []figure{ns(kubePkg, "Ask/list")}, scale: 1e-6, unit: "ms", limit: 300, why: "all complete placements, as JSON over HTTP"},
	{name: "reading/get", value: []figure{ns(kubePkg, "Ask/get")}, scale: 1e-6, unit: "ms", limit: 5, why: "one placement"},
	{name: "reading/first-list-to-json", value: []figure{ns(kubePkg, "FirstList/gitfleet")}, per: []figure{ns(kubePkg, "FirstList/json")},
		unit: "x", limit: 1, why: "the same at the first request for any of them, compared with a server that encodes with encoding/json in as many goroutines"},
	{name: "reading/told", value: []figure{ns(kubePkg, "Watch/watchers=1")}, scale: 1e-6, unit: "ms", limit: 50, why: "from the end of the turn to when a watcher has received the changed placement"},
	{name: "reading/watchers", value: []figure{{pkg: kubePkg, bench: "Watch/watchers=1000", name: "MiB"}}, unit: "MiB", limit: 200, why: "1,000 watchers of all placements, each with its own connection, both ends counted"},
	{name: "reading/publish", value: []figure{ns(kubePkg, "Publish/placements=1000")}, scale: 1e-6, unit: "ms", limit: 5, why: "a report in which one placement has changed"},
	{name: "reading/publish-allocations", value: []figure{allocated(kubePkg, "Publish/placements=1000")}, per: []figure{allocated(kubePkg, "Publish/placements=100")},
		unit: "x", limit: 1.5, why: "a fleet ten times as large needs no more memory for the same report"},
}

// Staged update runs of the built binary: three stages over 100 simulated members, each updated in two halves.
var runGoals = []goal{
	{name: "update-run/overhead", value: []figure{of("update-run", "overhead ms per stage")},
		unit: "ms", limit: 1000, why: "the stage with the most, beyond what a client takes that sends the changed object to one half and then to the other"},
	{name: "update-run/whole", value: []figure{of("update-run", "ms")},
		unit: "ms", limit: 3000, why: "from the commit in force to the end of the run; KubeFleet's goal is two minutes at the 90th percentile"},
}

// Requests to a forge.
var forgeGoals = []goal{
	{name: "forge/idle", value: []figure{{pkg: "./reconciler/proposal", bench: "Idle", name: "requests/min"}},
		unit: "/min", limit: 2, why: "requests while ten pull requests for drift are open and nothing happens"},
	{name: "forge/idle-with-plans", value: []figure{of("forge", "idle requests per minute")},
		unit: "/min", limit: 4, why: "the built binary with a Gitea and nine pull requests for drift, which are planned as well: both read one list, and commands are looked for in a list of comments"},
	{name: "forge/drift-to-push", value: []figure{of("forge", "drift to push ms")},
		unit: "ms", limit: 300, why: "median, from the answer to the foreign write to when Gitea receives the push of the branch, without drift.minAge"},
	{name: "forge/drift-to-branch-to-push", value: []figure{of("forge", "drift to branch ms")}, per: []figure{of("forge", "bare push ms")},
		unit: "x", limit: 1, why: "from the answer to the foreign write to the answer to the push, without drift.minAge, compared with a git push of a branch to the same Gitea"},
}
