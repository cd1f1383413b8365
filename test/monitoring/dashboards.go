package monitoring

import (
	"regexp"
	"strings"
)

// A dashboard is one page of Grafana.
type dashboard struct {
	file, uid, title, description string
	// variable is the label that the page is about; empty if it is about everything.
	variable string
	// values is the metric whose series have the values of the variable.
	values string
	rows   []row
}

type row struct {
	title  string
	panels []panel
}

// A panel is one graph, or one number.
type panel struct {
	title string
	kind  string // stat or timeseries
	unit  string // as Grafana calls it
	// about says what the panel shows, and which command explains it.
	about   string
	queries []query
}

type query struct{ expr, legend string }

const stat, timeseries = "stat", "timeseries"

// one is the only query of a panel.
func one(expr, legend string) []query { return []query{{expr, legend}} }

// dashboards are all pages. A query may use $placement or $cluster where the page has
// that variable, and $__rate_interval. Each series is also selected by $fleet, which every page has.
var dashboards = []dashboard{
	{
		file: "fleet.json", uid: "gitfleet-fleet", title: "gitfleet / Fleet", description: "The state of the whole fleet. On the command line: gitfleet status",
		rows: []row{
			{"Now", []panel{
				{"Commit in force", stat, "none", "The first digits of its hash. Explained by: gitfleet status", one(`gitfleet_commit_info{state="inForce"}`, "{{commit}}")},
				{"Clusters that answer", stat, "none", "Explained by: gitfleet get clusters", []query{{`sum(gitfleet_member_up)`, "up"}, {`count(gitfleet_member_up)`, "of"}}},
				{"Rollouts under way", stat, "none", "Explained by: gitfleet status", one(`count(gitfleet_rollout_started_timestamp_seconds) or vector(0)`, "rollouts")},
				{"Stopped rollouts", stat, "none", "A failed update stops them. Explained by: gitfleet status", one(`sum(gitfleet_rollout_stopped)`, "stopped")},
				{"Failed objects", stat, "none", "Explained by: gitfleet status", one(`sum(gitfleet_placement_failed_objects)`, "failed")},
				{"Blocked deletions", stat, "none", "Explained by: gitfleet status", one(`sum(gitfleet_placement_held_deletions)`, "blocked")},
			}},
			{"Over time", []panel{
				{"Placements on clusters by state", timeseries, "none", "Each placement on each cluster is in one state. Explained by: gitfleet status", one(`sum by (state) (gitfleet_placement_clusters)`, "{{state}}")},
				{"Placements furthest behind", timeseries, "s", "How long some cluster has been behind the commit in force. Explained by: gitfleet tree crp/NAME", one(`topk(10, gitfleet_placement_lag_seconds)`, "{{placement}}")},
				{"Clusters furthest behind", timeseries, "s", "Explained by: gitfleet describe cluster/NAME", one(`topk(10, gitfleet_member_lag_seconds)`, "{{cluster}}")},
				{"From commit to cluster", timeseries, "s", "The 95th percentile, over the last hour, of the time until a commit is applied and available on a cluster.", one(`histogram_quantile(0.95, sum by (le, stage) (rate(gitfleet_propagation_duration_seconds_bucket[1h])))`, "{{stage}}")},
				{"Objects that differ from Git", timeseries, "none", "Explained by: gitfleet drift list", one(`sum by (state) (gitfleet_drifted_objects) or vector(0)`, "{{state}}")},
				{"Drifts and repairs", timeseries, "none", "Explained by: gitfleet drift list", []query{{`sum(increase(gitfleet_drifts_total[$__rate_interval])) or vector(0)`, "drifts"}, {`sum(increase(gitfleet_drift_repairs_total[$__rate_interval])) or vector(0)`, "repairs"}}},
			}},
		},
	},
	{
		file: "rollout.json", uid: "gitfleet-rollout", title: "gitfleet / Rollout", description: "One placement. On the command line: gitfleet describe crp/NAME",
		variable: "placement", values: "gitfleet_placement_clusters",
		rows: []row{
			{"Now", []panel{
				{"Clusters with the newest content", stat, "percentunit", "100% if no rollout is in progress. Explained by: gitfleet tree $placement", one(`(max by (placement) (gitfleet_rollout_updated_clusters{placement="$placement"}) / sum by (placement) (gitfleet_placement_clusters{placement="$placement", state!="removing"})) or max by (placement) (gitfleet_placement_lag_commits{placement="$placement"} == bool 0)`, "updated")},
				{"Stopped", stat, "bool_yes_no", "A failed update stops the rollout. Explained by: gitfleet describe $placement", one(`gitfleet_rollout_stopped{placement="$placement"}`, "stopped")},
				{"Under way for", stat, "s", "Explained by: gitfleet describe $placement", one(`(time() - gitfleet_rollout_started_timestamp_seconds{placement="$placement"}) or (gitfleet_rollout_stopped{placement="$placement"} * 0)`, "age")},
				{"Commits behind", stat, "none", "Of the cluster that is furthest behind. Explained by: gitfleet tree $placement", one(`gitfleet_placement_lag_commits{placement="$placement"}`, "commits")},
				{"Selected objects", stat, "none", "Explained by: gitfleet tree $placement", one(`gitfleet_placement_selected_objects{placement="$placement"}`, "objects")},
				{"Failed objects", stat, "none", "Explained by: gitfleet describe $placement", one(`gitfleet_placement_failed_objects{placement="$placement"}`, "failed")},
			}},
			{"Staged update run", []panel{
				{"Run, stage and state", stat, "none", "The run that is in force or, if none is, the newest. Explained by: gitfleet describe $placement", one(`gitfleet_rollout_update_run_info{placement="$placement"} or on (placement) label_replace(gitfleet_rollout_stopped{placement="$placement"} * 0, "run", "none", "", "")`, "{{run}} {{stage}} {{reason}}")},
				{"Waits for an approval", stat, "s", "Approve it with: gitfleet approve $placement --stage STAGE", one(`(time() - gitfleet_rollout_approval_requested_timestamp_seconds{placement="$placement"}) or on (placement) gitfleet_rollout_stopped{placement="$placement"} * 0`, "{{stage}}")},
				{"Gates", stat, "none", "Gates of the current stage, once its clusters are updated. Explained by: gitfleet describe $placement", one(`gitfleet_rollout_gate_info{placement="$placement"} or on (placement) label_replace(gitfleet_rollout_stopped{placement="$placement"} * 0, "gate", "none", "", "")`, "{{stage}} {{gate}} {{state}}")},
				{"Past maxAge of a window", stat, "none", "Clusters for which new content has waited for a window longer than its maxAge. Explained by: gitfleet describe $placement", one(`gitfleet_placement_overdue_clusters{placement="$placement"} or on (placement) gitfleet_rollout_stopped{placement="$placement"} * 0`, "clusters")},
			}},
			{"Over time", []panel{
				{"Clusters by state", timeseries, "none", "Explained by: gitfleet tree $placement", one(`gitfleet_placement_clusters{placement="$placement"}`, "{{state}}")},
				{"Lag", timeseries, "s", "How long some cluster has been behind the commit in force. Explained by: gitfleet tree $placement", one(`gitfleet_placement_lag_seconds{placement="$placement"}`, "lag")},
				{"Budget in use", timeseries, "none", "Unavailable clusters, and how many may be. Both are 0 if no rollout is in progress. Explained by: gitfleet status", []query{
					{`max by (placement) (gitfleet_rollout_unavailable_clusters{placement="$placement"} or gitfleet_rollout_stopped{placement="$placement"} * 0)`, "unavailable"},
					{`max by (placement) (gitfleet_rollout_max_unavailable_clusters{placement="$placement"} or gitfleet_rollout_stopped{placement="$placement"} * 0)`, "maxUnavailable"},
				}},
				{"Clusters where placements wait", timeseries, "none", "The number of waiting placements. Explained by: gitfleet status", one(`sum by (cluster) (gitfleet_member_placements{state="waiting"})`, "{{cluster}}")},
				{"Rollouts of the last day, all placements", timeseries, "none", "Explained by: gitfleet history", []query{
					{`round(sum(increase(gitfleet_rollouts_started_total[1d])))`, "started"}, {`round(sum(increase(gitfleet_rollouts_finished_total[1d])))`, "finished"}, {`round(sum(increase(gitfleet_rollouts_stopped_total[1d])))`, "stopped"},
				}},
				{"Duration of rollouts of the last day, all placements", timeseries, "s", "The median of finished rollouts.", one(`histogram_quantile(0.5, sum by (le) (increase(gitfleet_rollout_duration_seconds_bucket[1d])))`, "median")},
			}},
		},
	},
	{
		file: "cluster.json", uid: "gitfleet-cluster", title: "gitfleet / Cluster", description: "One member cluster. On the command line: gitfleet describe cluster/NAME",
		variable: "cluster", values: "gitfleet_member_up",
		rows: []row{
			{"Now", []panel{
				{"Answers", stat, "bool_yes_no", "Explained by: gitfleet describe cluster/$cluster", one(`gitfleet_member_up{cluster="$cluster"}`, "up")},
				{"Latency of the last probe", stat, "s", "Explained by: gitfleet describe cluster/$cluster", one(`gitfleet_member_probe_duration_seconds{cluster="$cluster"}`, "probe")},
				{"Commits behind", stat, "none", "Of the placement that is furthest behind. Explained by: gitfleet describe cluster/$cluster", one(`gitfleet_member_lag_commits{cluster="$cluster"}`, "commits")},
				{"Requests in flight", stat, "none", "Watches do not count.", one(`sum(gitfleet_member_requests_in_flight{cluster="$cluster"}) or vector(0)`, "in flight")},
			}},
			{"Over time", []panel{
				{"Placements by state", timeseries, "none", "Explained by: gitfleet describe cluster/$cluster", one(`gitfleet_member_placements{cluster="$cluster"}`, "{{state}}")},
				{"Lag", timeseries, "s", "Explained by: gitfleet describe cluster/$cluster", one(`gitfleet_member_lag_seconds{cluster="$cluster"}`, "lag")},
				{"Requests", timeseries, "reqps", "By verb and status code.", one(`sum by (verb, code) (rate(gitfleet_member_requests_total{cluster="$cluster"}[$__rate_interval]))`, "{{verb}} {{code}}")},
				{"Requests that are throttled or get no answer", timeseries, "reqps", "Code 429, or no answer at all.", one(`sum by (code) (rate(gitfleet_member_requests_total{cluster="$cluster", code=~"429|error"}[$__rate_interval])) or label_replace(vector(0), "code", "429", "", "")`, "{{code}}")},
				{"Operations on objects", timeseries, "ops", "Explained by: gitfleet history --cluster $cluster", one(`sum by (action, result) (rate(gitfleet_operations_total{cluster="$cluster"}[$__rate_interval]))`, "{{action}} {{result}}")},
				{"Drifts and repairs", timeseries, "none", "Explained by: gitfleet drift list", []query{
					{`sum(increase(gitfleet_drifts_total{cluster="$cluster"}[$__rate_interval])) or vector(0)`, "drifts"}, {`sum(increase(gitfleet_drift_repairs_total{cluster="$cluster"}[$__rate_interval])) or vector(0)`, "repairs"},
				}},
				{"Watches that were started again", timeseries, "none", "Watches are restarted when a cluster is reachable again.", one(`sum(increase(gitfleet_member_watch_restarts_total{cluster="$cluster"}[$__rate_interval])) or vector(0)`, "restarts")},
			}},
		},
	},
	{
		file: "daemon.json", uid: "gitfleet-daemon", title: "gitfleet / Source and daemon", description: "The repository, and the daemon itself. On the command line: gitfleet status",
		rows: []row{
			{"Repository", []panel{
				{"Since the last answer", stat, "s", "Explained by: gitfleet status", one(`time() - gitfleet_git_last_success_timestamp_seconds`, "ago")},
				{"Problems", stat, "none", "Errors refuse the newest commit. Explained by: gitfleet status", one(`gitfleet_commit_problems`, "{{severity}}")},
				{"Objects in Git", stat, "none", "Objects of the commit in force that placements may select.", one(`gitfleet_commit_objects`, "objects")},
				{"Polls", timeseries, "reqps", "By result. Explained by: gitfleet status", one(`sum by (result) (rate(gitfleet_git_polls_total[$__rate_interval]))`, "{{result}}")},
				{"Duration of polls and loads", timeseries, "s", "The 95th percentile over the last hour.", []query{
					{`histogram_quantile(0.95, sum by (le) (rate(gitfleet_git_poll_duration_seconds_bucket[1h])))`, "poll"},
					{`histogram_quantile(0.95, sum by (le) (rate(gitfleet_load_duration_seconds_bucket[1h])))`, "load"},
				}},
			}},
			{"Loop and server", []panel{
				{"Duration of phases", timeseries, "s", "The 99th percentile over the last ten minutes.", one(`histogram_quantile(0.99, sum by (le, phase) (rate(gitfleet_loop_phase_duration_seconds_bucket[10m])))`, "{{phase}}")},
				{"Age of the queue", timeseries, "s", "Age of the oldest event that waits for the loop.", one(`gitfleet_loop_queue_age_seconds`, "oldest event")},
				{"Requests to the daemon", timeseries, "reqps", "By route.", one(`sum by (handler) (rate(gitfleet_http_requests_total[$__rate_interval]))`, "{{handler}}")},
				{"Entries of the history", timeseries, "none", "Dropped entries are missing from the output of gitfleet history.", []query{{`rate(gitfleet_history_entries_total[$__rate_interval])`, "written"}, {`rate(gitfleet_history_dropped_total[$__rate_interval])`, "dropped"}}},
			}},
			{"Process", []panel{
				{"Memory", timeseries, "bytes", "Resident memory of the process, and live objects on its heap.", []query{{`process_resident_memory_bytes`, "resident"}, {`go_gc_heap_live_bytes`, "live"}}},
				{"Processors", timeseries, "none", "Processors in use.", one(`rate(process_cpu_seconds_total[$__rate_interval])`, "busy")},
				{"Goroutines", timeseries, "none", "Their number depends on the number of clusters.", one(`go_goroutines`, "goroutines")},
				{"Version", stat, "none", "Explained by: gitfleet version", one(`gitfleet_build_info`, "{{version}}")},
			}},
		},
	},
}

// selected matches the selector of a series: the name of a metric, with the brace of its labels.
var selected = regexp.MustCompile(`\b(?:gitfleet_|process_|go_)[a-z_]+[a-z]\b(\{)?`)

// text is the query as Grafana has it: each of its series is that of the fleet of the page.
func (q query) text() string {
	return selected.ReplaceAllStringFunc(q.expr, func(series string) string {
		if name, labels := strings.CutSuffix(series, "{"); labels {
			return name + `{fleet="$fleet", `
		}
		return series + `{fleet="$fleet"}`
	})
}

// at is the query for one value of the variable of its page, over short intervals.
func (q query) at(variable, value string) string {
	expr := strings.NewReplacer("$__rate_interval", "1m", "$fleet", value).Replace(q.text())
	if variable == "" {
		return expr
	}
	return strings.ReplaceAll(expr, "$"+variable, value)
}
