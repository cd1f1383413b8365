package main

import (
	"strings"
	"testing"

	"github.com/gitfleet/gitfleet/gitsource/forge"
)

// What pull requests need is asked for at the start, and only by who wants them.
func TestProposingNeedsAForge(t *testing.T) {
	for settings, want := range map[string][]string{
		"drift: {mode: merge}": {`gitfleet.yaml:4: drift.mode: "merge" is none of revert, propose, report`},
		"drift: {mode: propose}\nforge: {url: 'ftp://a'}": {
			"source.branch: pull requests of drift are opened to a branch: name it", `forge.type: "" is none of gitea, github, gitlab`,
			"forge.tokenFile: set one of tokenFile and tokenEnv", "forge.url: must be like https://git.example.com",
		},
		"drift: {mode: propose}\nforge: {type: gitea, tokenEnv: T, url: 'http://git.example.com'}": {"gitfleet.yaml:5: forge.url: must be https://"},
		"forge: {type: gitea}": {"source.branch: pull requests of drift", "forge.tokenFile: set one of tokenFile and tokenEnv"}, // for annotations
		"drift: {mode: propose}\nforge: {type: gitea, tokenEnv: T, interval: 10ms}":             {"gitfleet.yaml:5: forge.interval: must be at least 1s, is 10ms"},
		"pullRequests: {plans: true, forksLabel: plan-this}\nforge: {type: gitea, tokenEnv: T}": {"gitfleet.yaml:4: pullRequests.forksLabel: has no effect on Gitea"},
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
	if f := c.forge(); err != nil || f.URL != "https://git.example.com" || f.Repository != "platform/fleet" {
		t.Errorf("the forge is %s, %s: %v", f.URL, f.Repository, err)
	}
	for host, want := range map[string]forge.Type{"github.com": forge.GitHub, "gitlab.com": forge.GitLab} {
		c, err := load(t, strings.Replace(smallest, "git.example.com/fleet", host+"/platform/fleet.git, branch: main", 1)+"drift: {mode: propose}\nforge: {tokenEnv: T}")
		if f := c.forge(); err != nil || f.Type != want {
			t.Errorf("at %s is a %q: %v", host, f.Type, err)
		}
	}
	if _, err := load(t, smallest+"drift: {mode: report}"); err != nil {
		t.Errorf("report: %v", err)
	}
}
