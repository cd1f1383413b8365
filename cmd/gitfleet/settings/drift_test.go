package settings

import (
	"strings"
	"testing"

	"github.com/gitfleet/gitfleet/gitsource/forge"
	"github.com/gitfleet/gitfleet/placement/api"
)

// The settings that pull requests need are required at the start, and only if pull requests are
// enabled.
func TestProposingNeedsAForge(t *testing.T) {
	for settings, want := range map[string][]string{
		"drift: {mode: merge}":       {`gitfleet.yaml:4: drift.mode: "merge" is none of revert, propose, report`},
		"drift: {group: object}":     {`gitfleet.yaml:4: drift.group: "object" is none of change, placement`},
		"drift: {additions: revert}": {`gitfleet.yaml:4: drift.additions: "revert" is none of ignore, report`},
		"drift: {additions: ignore}": nil,
		"drift:\n  kinds:\n    Secret: revert\n    apps/Deployment: merge\n    deployment: report\n    Gadget: report\n    Secrt: report": {
			`gitfleet.yaml:7: drift.kinds.apps/Deployment: "merge" is none of revert, propose, report`,
			`gitfleet.yaml:8: drift.kinds.deployment: is not a kind of the core group; did you mean apps/Deployment?`,
			`gitfleet.yaml:9: drift.kinds.Gadget: is not a kind of the core group; write GROUP/KIND, such as apps/Deployment`,
			`gitfleet.yaml:10: drift.kinds.Secrt: is not a kind of the core group; did you mean Secret?`,
		},
		"drift:\n  kinds:\n    apps/Deploymnt: report\n    app/Deployment: report\n    batch/cronjob: report\n    rbac.authorization.k8s.io/ClusterRoll: report": {
			`gitfleet.yaml:6: drift.kinds.apps/Deploymnt: is not a kind of Kubernetes; did you mean apps/Deployment?`,
			`gitfleet.yaml:7: drift.kinds.app/Deployment: is not a kind of Kubernetes; did you mean apps/Deployment?`,
			`gitfleet.yaml:8: drift.kinds.batch/cronjob: is not a kind of Kubernetes; did you mean batch/CronJob?`,
			`gitfleet.yaml:9: drift.kinds.rbac.authorization.k8s.io/ClusterRoll: is not a kind of Kubernetes; did you mean rbac.authorization.k8s.io/ClusterRole?`,
		},
		"drift: {kinds: [Secret]}":                   {`gitfleet.yaml:4: drift.kinds: must be a mapping of KIND or GROUP/KIND to revert, propose or report, is a list`},
		"drift: {kinds: {Secret: [revert]}}":         {`gitfleet.yaml:4: drift.kinds.Secret: must be revert, propose or report, is a list`},
		"drift: {kinds: {apps/Deployment: propose}}": {`forge.type: "" is none of gitea, github, gitlab`},
		"drift: {mode: propose}\nforge: {url: 'ftp://a'}": {
			"source.branch: pull requests of drift need a target branch: set it", `forge.type: "" is none of gitea, github, gitlab`,
			"forge.tokenFile: set one of tokenFile and tokenEnv", "forge.url: must be like https://git.example.com",
		},
		"drift: {mode: propose}\nforge: {type: gitea, tokenEnv: T, url: 'http://git.example.com'}": {"gitfleet.yaml:5: forge.url: must be https://"},
		"forge: {type: gitea}": {"source.branch: pull requests of drift", "forge.tokenFile: set one of tokenFile and tokenEnv"}, // for annotations
		"drift: {mode: propose}\nforge: {type: gitea, tokenEnv: T, interval: 10ms}":             {"gitfleet.yaml:5: forge.interval: must be at least 1s, is 10ms"},
		"pullRequests: {plans: true, forksLabel: plan-this}\nforge: {type: gitea, tokenEnv: T}": {"gitfleet.yaml:4: pullRequests.forksLabel: has no effect on Gitea"},
		"pullRequests: {dryRun: true}": {"gitfleet.yaml:4: pullRequests.dryRun: is a part of the plans: set pullRequests.plans as well"},
	} {
		_, err := load(t, smallest+settings)
		for _, w := range want {
			if err == nil || !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %v\nwant %s", settings, err, w)
			}
		}
	}
	c, err := load(t, strings.Replace(smallest, "git.example.com/fleet", "git.example.com/platform/fleet.git, branch: main", 1)+
		"drift: {mode: propose}\nforge: {type: gitea, tokenEnv: T}")
	if f := c.ForgeConfig(); err != nil || f.URL != "https://git.example.com" || f.Repository != "platform/fleet" {
		t.Errorf("the forge is %s, %s: %v", f.URL, f.Repository, err)
	}
	for host, want := range map[string]forge.Type{"github.com": forge.GitHub, "gitlab.com": forge.GitLab} {
		c, err := load(t, strings.Replace(smallest, "git.example.com/fleet", host+"/platform/fleet.git, branch: main", 1)+"drift: {mode: propose}\nforge: {tokenEnv: T}")
		if f := c.ForgeConfig(); err != nil || f.Type != want {
			t.Errorf("at %s is a %q: %v", host, f.Type, err)
		}
	}
	if _, err := load(t, smallest+"drift: {mode: report}"); err != nil {
		t.Errorf("report: %v", err)
	}
}

// The file and --set can set the modes of kinds. Those of the command line replace those of the
// file.
func TestDriftModesOfKinds(t *testing.T) {
	secret, deployment := api.GroupKind{Kind: "Secret"}, api.GroupKind{Group: "apps", Kind: "Deployment"}
	const file = smallest + "drift: {mode: report, kinds: {Secret: revert, apps/Deployment: report, example.com/Deployment: report}}"
	c, err := load(t, file)
	if got := c.Drift.Kinds.Modes(); err != nil || len(got) != 3 || got[secret] != api.DriftRevert || got[deployment] != api.DriftReport {
		t.Errorf("%v: %v", got, err)
	}
	c, err = load(t, file, "--set", "drift.kinds=Secret=report", "--set", "drift.kinds=apps/Deployment=revert")
	if got := c.Drift.Kinds.Modes(); err != nil || len(got) != 2 || got[secret] != api.DriftReport || got[deployment] != api.DriftRevert {
		t.Errorf("with --set: %v: %v", got, err)
	}
	if _, err = load(t, file, "--set", "drift.kinds=Secret"); err == nil || !strings.Contains(err.Error(), `--set drift.kinds=Secret: "Secret" is not KIND=MODE`) {
		t.Errorf("without a mode: %v", err)
	}
}
