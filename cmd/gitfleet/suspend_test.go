package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/exit"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler"
	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/proposal"
	"github.com/gitfleet/gitfleet/reconciler/server"
	"github.com/gitfleet/gitfleet/reconciler/status"
	"github.com/gitfleet/gitfleet/test/golden"
	"github.com/gitfleet/gitfleet/test/reports"
)

// ordered returns an action of a daemon that calls do.
func ordered(do func(context.Context, reconciler.Order) (string, error)) server.Action {
	return func(ctx context.Context, _ string, body []byte) (any, error) {
		var o reconciler.Order
		if err := json.Unmarshal(body, &o); err != nil {
			return nil, err
		}
		said, err := do(ctx, o)
		var own *reconciler.OrderError
		var decided *proposal.RefusedError
		if errors.As(err, &own) || errors.As(err, &decided) {
			err = &server.RefusedError{Err: err}
		}
		return server.ActionResult{Message: said}, err
	}
}

// obedient returns the address of a daemon that accepts every order and records it.
func obedient(t *testing.T, got *reconciler.Order, fail error) string {
	t.Helper()
	daemon := server.New(nil)
	do := func(_ context.Context, o reconciler.Order) (string, error) {
		*got = o
		return "done", fail
	}
	daemon.MountAction("suspend", ordered(do))
	daemon.MountAction("resume", ordered(do))
	srv := httptest.NewServer(daemon.Handler())
	t.Cleanup(srv.Close)
	return srv.URL
}

// The order to the daemon has the arguments of the command line, and the name of the user.
func TestSuspendAndResumeAsk(t *testing.T) {
	t.Setenv("USER", "alice")
	tests := map[string]struct {
		args string
		want reconciler.Order
	}{
		"a placement": {"suspend crp/web --reason INC-1", reconciler.Order{Subject: "crp/web", Reason: "INC-1", By: "alice"}},
		"an object": {"suspend deployment/web -n shop --cluster east --for 2h --reason INC-1",
			reconciler.Order{Subject: "deployment/web", Namespace: "shop", Cluster: "east", Reason: "INC-1", By: "alice"}},
		"until": {"suspend cluster/east --until 2030-01-31T18:00:00Z --reason INC-1",
			reconciler.Order{Subject: "cluster/east", Reason: "INC-1", By: "alice", Until: time.Date(2030, 1, 31, 18, 0, 0, 0, time.UTC)}},
		"resume a stopped rollout": {"resume crp/web --stopped --reason INC-1", reconciler.Order{Subject: "crp/web", Stopped: true, Reason: "INC-1", By: "alice"}},
		"resume":                   {"resume rp/shop/web --cluster east", reconciler.Order{Subject: "rp/shop/web", Cluster: "east", By: "alice"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var got reconciler.Order
			address := obedient(t, &got, nil)
			var out bytes.Buffer
			transcribe(&out, append(strings.Fields(test.args), "--server", address)...)
			if out.String() != "done\n" {
				t.Errorf("it prints %s", out.String())
			}
			if strings.Contains(test.args, "--for 2h") {
				test.want.For.Duration = 2 * time.Hour
			}
			if got != test.want {
				t.Errorf("asked for %+v, want %+v", got, test.want)
			}
		})
	}
}

// Invalid arguments are refused at once. A refusal by the daemon is printed with the daemon's
// message.
func TestSuspendSaysWhatIsWrong(t *testing.T) {
	tests := map[string]struct {
		args string
		fail error
		want string
	}{
		"no reason":              {"suspend crp/web", nil, "! gitfleet: --reason is required, such as --reason "},
		"stopped, and no reason": {"resume crp/web --stopped", nil, "! gitfleet: --stopped needs --reason: why the rollout may continue "},
		"a reason for nothing":   {"resume crp/web --reason INC-1", nil, "! gitfleet: --reason needs --stopped or --failed-content"},
		"no time":                {"suspend crp/web --reason a --until tomorrow", nil, `! gitfleet: --until "tomorrow": write 18:00, 2026-01-31 18:00, or 2026-01-31T18:00:00Z`},
		"unknown":                {"suspend crp/wbe --reason a", &status.UnknownError{What: "placement", Name: "crp/wbe", Exist: []string{"crp/web"}}, "! gitfleet: there is no placement crp/wbe; did you mean crp/web?"},
		"refused":                {"resume crp/web", &reconciler.OrderError{Why: "crp/web is not suspended, and nothing else is either"}, "! gitfleet: crp/web is not suspended, and nothing else is either"},
		"in trouble":             {"resume crp/web", errors.New("the ledger could not be saved"), "! gitfleet: the daemon answers 503 Service Unavailable: the ledger could not be saved"},
		"no daemon":              {"resume crp/web --server http://127.0.0.1:1", nil, "! gitfleet: no daemon answers at http://127.0.0.1:1"},
		"two subjects":           {"resume crp/web crp/db", nil, "! gitfleet: unexpected argument \"crp/db\"; write gitfleet resume KIND/NAME"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var got reconciler.Order
			args := strings.Fields(test.args)
			if !strings.Contains(test.args, "--server") {
				args = append(args, "--server", obedient(t, &got, test.fail))
			}
			var out bytes.Buffer
			transcribe(&out, args...)
			code := exit.Failed
			if strings.Contains(test.want, "there is no ") {
				code = exit.Attention
			}
			if !strings.HasPrefix(out.String(), test.want) || !strings.HasSuffix(out.String(), fmt.Sprintf("exit code %d\n", code)) {
				t.Errorf("it prints %s\nwant %s", out.String(), test.want)
			}
		})
	}
}

// status shows suspensions, with the user, the end and the reason, and what waits for them.
func TestStatusShowsSuspensions(t *testing.T) {
	s := reports.Settled(t)
	for _, x := range []ledger.Suspension{
		{Subject: ledger.Subject{Cluster: "ams"}, By: "alice", Reason: "the network is being mended", Since: s.Now, Until: s.Now.Add(2 * time.Hour)},
		{Subject: ledger.Subject{Placement: api.PlacementKey{Name: "web"}, Cluster: "ber"}, By: "bob", Reason: "INC-17", Since: s.Now.Add(-time.Hour)},
		{Subject: ledger.Subject{Object: reports.ConfigMap("two")}, By: "bob", Reason: "INC-18", Since: s.Now},
	} {
		s.In.Ledger.Suspend(x)
	}
	s.Commit(reports.SecondCommit, "Grace Hopper <grace@example.com>", "Say two", reports.WithValue(reports.Manifests, "2"))
	s.Turn(time.Minute)
	_, address := listening(t, s.Report)
	book := golden.Open(t, "testdata/suspend.txt")
	for name, args := range map[string][]string{
		"status": {"status"}, "get": {"get", "crp", "-o", "wide"}, "clusters-yaml": {"get", "clusters", "ams", "-o", "yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			transcribe(&out, append(args, "--server", address)...)
			book.Compare(t, name, out.String())
		})
	}
}
