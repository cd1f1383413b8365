package client

import (
	"errors"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gitfleet/gitfleet/reconciler"
	"github.com/gitfleet/gitfleet/reconciler/server"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// A daemon of another fleet than the configuration at hand carries nothing out and shows nothing, and the message says which
// daemon would be the right one. A configuration without a name is compared by its repository.
func TestADaemonOfAnotherFleetIsNoticed(t *testing.T) {
	daemon := server.New(nil)
	daemon.SetFleet("shop", "git.example.com/shop?branch=main")
	daemon.Publish(&status.Report{})
	srv := httptest.NewServer(daemon.Handler())
	t.Cleanup(srv.Close)
	for name, test := range map[string]struct{ config, want string }{
		"its own":            {"fleetName: shop\nsource: {url: https://git.example.com/elsewhere, branch: main}\n", ""},
		"its own repository": {"source: {url: git@git.example.com:shop.git, branch: main}\n", ""},
		"not readable":       {"kind: Deployment\n", ""},
		"without a source":   {"fleetName: prod\n", ""},
		"another name": {"fleetName: prod\nlisten: 127.0.0.1:9999\nsource: {url: https://git.example.com/shop, branch: main}\n",
			`it is the fleet "shop" of git.example.com/shop?branch=main, and FILE is of the fleet "prod" of git.example.com/shop?branch=main` + "\n" +
				"Set the address of the right daemon with --server or $GITFLEET_SERVER; the one of FILE listens at http://127.0.0.1:9999."},
		"another repository": {"source: {url: https://git.example.com/prod, branch: main}\n", "is of the fleet of git.example.com/prod?branch=main"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "fleet.yaml")
			if err := os.WriteFile(file, []byte(test.config), 0o600); err != nil {
				t.Fatal(err)
			}
			c, err := (&Connection{Address: srv.URL, Config: file}).Client()
			if err != nil {
				t.Fatal(err)
			}
			checkFleet(t, c, strings.ReplaceAll(test.want, "FILE", file))
		})
	}
}

// The configuration in the working directory counts only if nobody has chosen a daemon.
func TestTheConfigurationAtHand(t *testing.T) {
	t.Chdir(t.TempDir())
	standard := Connection{Address: standardAddress()}
	if w := standard.wantedFleet(); w != (wantedFleet{}) {
		t.Errorf("without a configuration: %+v", w)
	}
	if err := os.WriteFile(configFile, []byte("fleetName: prod\nsource: {url: https://git.example.com/prod, branch: main}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if w := standard.wantedFleet(); w.name != "prod" || w.file != configFile {
		t.Errorf("%+v", w)
	}
	if w := (&Connection{Address: "http://fleet.example.com"}).wantedFleet(); w != (wantedFleet{}) {
		t.Errorf("of a daemon that was named: %+v", w)
	}
	t.Setenv(ServerEnv, standard.Address)
	if w := standard.wantedFleet(); w != (wantedFleet{}) {
		t.Errorf("of a daemon that the environment names: %+v", w)
	}
}

// A response of a proxy is not about fleets if the request has not asked for one.
func TestMisdirectedWithoutAWantedFleet(t *testing.T) {
	_, err := (&fakeDaemon{code: 421, body: "wrong host"}).client(t).Report(t.Context(), Subject{})
	if answer, ok := errors.AsType[*ResponseError](err); !ok || answer.Code != 421 {
		t.Errorf("%v", err)
	}
}

// writeClone writes the parts of a clone that are read: its configuration with remotes, and files.
func writeClone(t *testing.T, config string, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	files = maps.Clone(files)
	files[".git/HEAD"], files[".git/config"], files[".git/objects/pack/.keep"] = "ref: refs/heads/main\n", config, ""
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Without a configuration, the clone that the working directory is in says which fleet is meant, if it is one of a hub: the daemon
// of another repository or directory does nothing. Repositories are the same whatever address they are cloned from.
func TestADaemonOfAnotherRepositoryIsNoticedInAClone(t *testing.T) {
	const member, app = "apiVersion: cluster.kubernetes-fleet.io/v1beta1\nkind: MemberCluster\n", "apiVersion: v1\nkind: ConfigMap\n"
	origin := func(address string) string { return "[remote \"origin\"]\n\turl = " + address + "\n" }
	hub := map[string]string{"fleets/eu/clusters/ams.yaml": member, "fleets/us/clusters/nyc.yml": member, "apps/web.yaml": app, "docs/readme.md": "#"}
	for name, test := range map[string]struct {
		source, config string
		files          map[string]string
		in             string
		want           string // empty if the daemon is asked
	}{
		"https":              {"git.example.com/team/fleet?branch=main", origin("https://git.example.com/team/fleet.git"), hub, ".", ""},
		"ssh":                {"git.example.com/team/fleet?branch=main", origin("git@git.example.com:team/Fleet"), hub, "apps", ""},
		"a token":            {"git.example.com/team/fleet", origin("https://ada:canary@git.example.com/team/fleet"), hub, ".", ""},
		"an internal host":   {"gitea.gitea.svc:3000/team/fleet//fleets/eu", origin("ssh://git@git.example.com:2222/srv/team/fleet.git"), hub, "fleets/eu/clusters", ""},
		"another remote":     {"git.example.com/team/fleet", origin("https://git.example.com/ada/fleet") + "[remote \"up\"]\n\turl = https://git.example.com/team/fleet\n", hub, ".", ""},
		"Azure":              {"dev.azure.com/org/team/_git/fleet", origin("git@ssh.dev.azure.com:v3/org/team/fleet"), hub, ".", ""},
		"a file":             {"file:///srv/git/fleet//fleets/us?branch=main", origin("/srv/git/fleet.git"), hub, "fleets", ""},
		"the clone itself":   {"file://TOP", origin("https://git.example.com/team/fleet"), hub, ".", ""},
		"no remote":          {"git.example.com/team/fleet", "", hub, ".", ""},
		"not a hub":          {"git.example.com/team/fleet", origin("https://git.example.com/team/web"), map[string]string{"deploy/web.yaml": app}, "deploy", ""},
		"not in a hub":       {"git.example.com/team/fleet//fleets/us", origin("https://git.example.com/team/fleet"), hub, "docs", ""},
		"examples and tests": {"git.example.com/team/fleet", origin("https://git.example.com/team/tool"), map[string]string{"examples/web/ams.yaml": member, "pkg/testdata/ams.yaml": member, "test/ams.yaml": member}, ".", ""},
		"a clone in it":      {"git.example.com/team/fleet", origin("https://git.example.com/team/tool"), map[string]string{"build/fleet/.git/HEAD": "", "build/fleet/ams.yaml": member}, ".", ""},
		"an example":         {"git.example.com/team/fleet", origin("https://git.example.com/team/tool"), map[string]string{"examples/web/ams.yaml": member}, "examples", "clone of git.example.com/team/tool//examples\n"},
		"another repository": {"git.example.com/team/fleet?branch=main", origin("git@git.example.com:team/prod.git"), hub, ".", "this directory is in a clone of git.example.com/team/prod\n"},
		"of a manifest":      {"git.example.com/team/fleet?branch=main", origin("git@git.example.com:team/prod.git"), hub, "apps", "this directory is in a clone of git.example.com/team/prod\n"},
		"another owner":      {"git.example.com/team/fleet", origin("https://git.example.com/ada/fleet"), hub, ".", "clone of git.example.com/ada/fleet\n"},
		"another directory":  {"git.example.com/team/fleet//fleets/us", origin("https://git.example.com/team/fleet"), hub, "fleets/eu/clusters", "clone of git.example.com/team/fleet//fleets/eu/clusters\n"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := writeClone(t, test.config, test.files)
			t.Chdir(filepath.Join(dir, test.in))
			top, err := filepath.EvalSymlinks(dir)
			if err != nil {
				t.Fatal(err)
			}
			daemon := server.New(nil)
			daemon.SetFleet("shop", strings.ReplaceAll(test.source, "TOP", top))
			daemon.Publish(&status.Report{})
			srv := httptest.NewServer(daemon.Handler())
			t.Cleanup(srv.Close)
			c, err := (&Connection{Address: standardAddress()}).Client()
			if err != nil {
				t.Fatal(err)
			}
			c.Address = srv.URL
			checkFleet(t, c, test.want, `it is the fleet "shop" of git.example.com/team/fleet`)
		})
	}
}

// checkFleet checks that a daemon answers, or, if the first text is not empty, that it refuses questions and orders since it is of
// another fleet, and that the errors have all texts.
func checkFleet(t *testing.T, c *Client, texts ...string) {
	t.Helper()
	_, failed := c.Report(t.Context(), Subject{})
	if texts[0] == "" {
		if failed != nil {
			t.Error(failed)
		}
		return
	}
	_, act := c.Act(t.Context(), "sync", reconciler.Order{})
	for _, err := range []error{failed, act} {
		if _, another := errors.AsType[*AnotherFleetError](err); !another || !IsRefusal(err) {
			t.Errorf("%v, want one about another fleet", err)
			continue
		}
		for _, text := range texts {
			if !strings.Contains(err.Error(), text) {
				t.Errorf("%v, want %s", err, text)
			}
		}
	}
}
