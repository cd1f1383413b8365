package client

import (
	"errors"
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
			_, failed := c.Report(t.Context(), Subject{})
			if test.want == "" {
				if failed != nil {
					t.Error(failed)
				}
				return
			}
			_, act := c.Act(t.Context(), "sync", reconciler.Order{})
			for _, err := range []error{failed, act} {
				if _, another := errors.AsType[*AnotherFleetError](err); !another || !IsRefusal(err) || !strings.Contains(err.Error(), strings.ReplaceAll(test.want, "FILE", file)) {
					t.Errorf("%v, want %s", err, test.want)
				}
			}
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
