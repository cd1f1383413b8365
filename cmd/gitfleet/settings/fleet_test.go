package settings

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

func TestSourceIdentity(t *testing.T) {
	tests := map[string]struct {
		source SourceConfig
		want   string
	}{
		"a repository": {SourceConfig{URL: "https://git.example.com/team/fleet.git", Path: "."}, "git.example.com/team/fleet"},
		"over SSH":     {SourceConfig{URL: "git@git.example.com:team/fleet", Path: ""}, "git.example.com/team/fleet"},
		"a directory":  {SourceConfig{URL: "https://git.example.com/team/fleet", Path: "./hub/"}, "git.example.com/team/fleet//hub"},
		"a branch":     {SourceConfig{URL: "https://git.example.com/team/fleet", Path: "hub", Branch: "main"}, "git.example.com/team/fleet//hub?branch=main"},
		"tags":         {SourceConfig{URL: "https://git.example.com/team/fleet", SemVer: ">=1.2"}, "git.example.com/team/fleet?semver=>=1.2"},
		"a commit":     {SourceConfig{URL: "https://git.example.com/team/fleet", Commit: strings.Repeat("a", 40)}, "git.example.com/team/fleet"},
	}
	for name, test := range tests {
		if got := test.source.Identity(); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// The default name is a valid label value, begins with the name of the repository, and is
// different for every source.
func TestDefaultFleetName(t *testing.T) {
	tests := map[string]string{
		"https://git.example.com/team/fleet.git":                           "fleet-",
		"https://git.example.com/other/fleet":                              "fleet-",
		"https://git.example.com/team/Fleet_of.Ours":                       "fleet_of.ours-",
		"https://git.example.com/team/flotte%20à%20nous":                   "flotte",
		"https://git.example.com/team/" + strings.Repeat("very-long-", 12): "very-long-",
		"https://git.example.com/---":                                      "fleet-",
	}
	seen := map[string]string{}
	for url, prefix := range tests {
		s := SourceConfig{URL: url, Path: "."}
		got := s.defaultFleetName()
		if !strings.HasPrefix(got, prefix) || len(validation.IsValidLabelValue(got)) > 0 {
			t.Errorf("%s: %q", url, got)
		}
		if seen[got] != "" {
			t.Errorf("%s and %s are both called %q", url, seen[got], got)
		}
		seen[got] = url
		if s.Branch = "main"; s.defaultFleetName() == got {
			t.Errorf("%s: the branch makes no difference", url)
		}
	}
}

func TestFleetOfAStateDirectory(t *testing.T) {
	source := SourceConfig{URL: "https://git.example.com/team/fleet", Path: "."}
	derived := source.defaultFleetName()
	saved := protocol.Fleet{Name: "shop", ID: "1234", Source: "git.example.com/team/before"}
	tests := map[string]struct {
		set       string
		saved     protocol.Fleet
		name, err string
	}{
		"first start, no name set":                {name: derived},
		"first start, a name set":                 {set: "shop", name: "shop"},
		"no name set, also after the URL changed": {saved: saved, name: "shop"},
		"the same name set":                       {set: "shop", saved: saved, name: "shop"},
		"another name set":                        {set: "store", saved: saved, err: `fleetName: the fleet in /state is "shop", and the configuration says "store"`},
		"state of the version before":             {saved: protocol.Fleet{Name: "default"}, name: "default"},
		"state of the version before, a name set": {set: "shop", saved: protocol.Fleet{Name: "default"}, name: "shop"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f, err := Config{FleetName: test.set, StateDir: "/state", Source: source}.Fleet(test.saved)
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) || !strings.Contains(err.Error(), "set fleetName: shop") {
					t.Fatalf("%v", err)
				}
				return
			}
			if err != nil || f.Name != test.name || f.Source != "git.example.com/team/fleet" {
				t.Errorf("%v, %v", f, err)
			}
			if f.ID == "" || test.saved.ID != "" && f.ID != test.saved.ID {
				t.Errorf("the ID is %q", f.ID)
			}
		})
	}
}
