package operate

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/exit"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler"
	"github.com/gitfleet/gitfleet/reconciler/server"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// ask runs a command with a daemon that has a report, and that answers orders. It returns the
// orders as ACTION SUBJECT, the output and the error.
func ask(t *testing.T, cmd *cobra.Command, r *status.Report, result server.ActionResult, args ...string) (orders []reconciler.Order, out string, err error) {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /report", func(w http.ResponseWriter, _ *http.Request) { json.NewEncoder(w).Encode(r) })
	mux.HandleFunc("POST /actions/", func(w http.ResponseWriter, req *http.Request) {
		var o reconciler.Order
		if err := json.NewDecoder(req.Body).Decode(&o); err != nil {
			t.Error(err)
		}
		orders = append(orders, o)
		json.NewEncoder(w).Encode(result)
	})
	srv := httptest.NewServer(mux)
	defer srv.Close()
	var b bytes.Buffer
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(append(args, "--server", srv.URL))
	cmd.SetOut(&b)
	cmd.SetErr(io.Discard)
	err = cmd.ExecuteContext(t.Context())
	return orders, b.String(), err
}

// A suspension and the continuation of a stopped rollout need a reason; nothing is requested
// without it.
func TestOrdersNeedAReason(t *testing.T) {
	for name, test := range map[string]struct {
		of   func() *cobra.Command
		args []string
		want string // the error; empty if the order is sent
	}{
		"suspended":                 {NewSuspend, []string{"crp/web", "--reason", "INC-1"}, ""},
		"suspended for no reason":   {NewSuspend, []string{"crp/web"}, "--reason is required"},
		"suspended for a blank":     {NewSuspend, []string{"crp/web", "--reason", " "}, "--reason is required"},
		"suspended until some time": {NewSuspend, []string{"crp/web", "--reason", "INC-1", "--until", "soon"}, `--until "soon": write 18:00, 2026-01-31 18:00, or 2026-01-31T18:00:00Z`},
		"resumed":                   {NewResume, []string{"crp/web"}, ""},
		"resumed with a reason":     {NewResume, []string{"crp/web", "--reason", "x"}, "--reason needs --stopped or --failed-content"},
		"continued with a reason":   {NewResume, []string{"crp/web", "--stopped", "--reason", "x"}, ""},
		"continued for no reason":   {NewResume, []string{"crp/web", "--stopped"}, "--stopped needs --reason"},
	} {
		t.Run(name, func(t *testing.T) {
			orders, out, err := ask(t, test.of(), nil, server.ActionResult{Message: "done"}, test.args...)
			if test.want == "" && (err != nil || len(orders) != 1 || orders[0].Subject != "crp/web" || out != "done\n") {
				t.Errorf("%+v, %q, %v", orders, out, err)
			}
			if test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want) || len(orders) > 0) {
				t.Errorf("%+v, %v; want %q", orders, err, test.want)
			}
		})
	}
}

// An order has the cluster and the object as the daemon names them.
func TestSubjectsOfOrders(t *testing.T) {
	until := time.Date(2026, 1, 31, 18, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		args []string
		want reconciler.Order
	}{
		"an object": {[]string{"deployment/web", "-n", "shop", "--cluster", "mc/east", "--for", "2h"}, reconciler.Order{Subject: "deployment/web", Namespace: "shop", Cluster: "east", For: metav1.Duration{Duration: 2 * time.Hour}}},
		"a cluster": {[]string{"mc/east", "--until", "2026-01-31T18:00:00Z"}, reconciler.Order{Subject: "cluster/east", Until: until}},
	} {
		t.Run(name, func(t *testing.T) {
			orders, _, err := ask(t, NewSuspend(), nil, server.ActionResult{}, append(test.args, "--reason", "INC-1")...)
			if err != nil {
				t.Fatal(err)
			}
			got := orders[0]
			got.By, test.want.Reason = "", "INC-1"
			if !got.Until.Equal(test.want.Until) {
				t.Errorf("until %s, want %s", got.Until, test.want.Until)
			}
			got.Until, test.want.Until = time.Time{}, time.Time{}
			if got != test.want {
				t.Errorf("%+v\nwant %+v", got, test.want)
			}
		})
	}
}

// Without an ID adopt-fleet lists the clusters that other fleets hold, and exits with 1 if there
// are any. With an ID the fleet is taken over.
func TestAdoptFleet(t *testing.T) {
	member := func(name, reason string, is metav1.ConditionStatus) *api.MemberCluster {
		return &api.MemberCluster{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Status: api.MemberClusterStatus{Conditions: []metav1.Condition{{Type: api.Joined, Status: is, Reason: reason, Message: "fleet 5f0c2a9e holds it"}}},
		}
	}
	ours, theirs := member("ams", "", metav1.ConditionTrue), member("ber", api.MemberClusterForeign, metav1.ConditionFalse)
	for name, test := range map[string]struct {
		clusters []*api.MemberCluster
		args     []string
		out      string
		err      error
		ordered  string
	}{
		"none held":   {[]*api.MemberCluster{ours, {ObjectMeta: metav1.ObjectMeta{Name: "new"}}}, nil, "no cluster is claimed by another fleet\n", nil, ""},
		"not joined":  {[]*api.MemberCluster{member("chi", "", metav1.ConditionFalse)}, nil, "no cluster is claimed by another fleet\n", nil, ""},
		"one held":    {[]*api.MemberCluster{ours, theirs}, nil, "ber: fleet 5f0c2a9e holds it\n", exit.Attention, ""},
		"with its ID": {[]*api.MemberCluster{ours, theirs}, []string{"5f0c2a9e"}, "adopted\n", nil, "5f0c2a9e"},
	} {
		t.Run(name, func(t *testing.T) {
			orders, out, err := ask(t, NewAdoptFleet(), &status.Report{Clusters: test.clusters}, server.ActionResult{Message: "adopted"}, test.args...)
			ordered := ""
			for _, o := range orders {
				ordered += o.Subject
			}
			if out != test.out || !errors.Is(err, test.err) || ordered != test.ordered {
				t.Errorf("%q, %v, ordered %q; want %q, %v, %q", out, err, ordered, test.out, test.err, test.ordered)
			}
		})
	}
}

// Sync fails if the repository cannot be read.
func TestSync(t *testing.T) {
	for name, test := range map[string]struct {
		result    server.ActionResult
		out, want string
	}{
		"read":          {server.ActionResult{Commit: "a1a1a1a1a1", Message: "1 cluster is compared"}, "the repository is at a1a1a1a1; 1 cluster is compared\n", ""},
		"no commit yet": {server.ActionResult{Message: "nothing to do"}, "the repository is at <none>; nothing to do\n", ""},
		"not readable":  {server.ActionResult{PollError: "no such host"}, "", "the repository cannot be read: no such host"},
	} {
		t.Run(name, func(t *testing.T) {
			orders, out, err := ask(t, NewSync(), nil, test.result, "crp/web")
			if out != test.out || (err == nil) != (test.want == "") || err != nil && err.Error() != test.want || orders[0].Subject != "crp/web" {
				t.Errorf("%+v, %q, %v", orders, out, err)
			}
		})
	}
}

// A kubeconfig refers to the files of credentials, has no secret, and is for its owner only.
func TestKubeconfig(t *testing.T) {
	dir := t.TempDir()
	token, file := filepath.Join(dir, "token"), filepath.Join(dir, "kubeconfig")
	if err := os.WriteFile(token, []byte("0123456789-secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := NewKubeconfig()
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetArgs([]string{"--server", "https://fleet.example.com", "--token-file", token, "-f", file})
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), "https://fleet.example.com") || !strings.Contains(string(text), token) || strings.Contains(string(text), "secret\n") {
		t.Errorf("it is\n%s", text)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 || out.Len() > 0 {
		t.Errorf("mode %v, %v, printed %q", info.Mode(), err, &out)
	}
	cmd = NewKubeconfig()
	cmd.SetOut(&out)
	cmd.SetArgs([]string{"--server", "https://fleet.example.com", "--token-file", token})
	if err := cmd.ExecuteContext(t.Context()); err != nil || out.String() != string(text) {
		t.Errorf("printed %q: %v", &out, err)
	}
}
