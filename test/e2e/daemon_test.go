package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/status"
	"github.com/gitfleet/gitfleet/test/checkout"
	"github.com/gitfleet/gitfleet/test/fleet"
	"github.com/gitfleet/gitfleet/test/githttp"
	"github.com/gitfleet/gitfleet/test/process"
	"github.com/gitfleet/gitfleet/test/scenario"
)

// binary builds gitfleet once for all tests, with the race detector.
var binary = sync.OnceValues(func() (string, error) {
	root, err := checkout.Root()
	if err != nil {
		return "", err
	}
	path := filepath.Join(root, "build", "race", "gitfleet")
	return path, checkout.Build(context.Background(), root, nil, path, "-race", "./cmd/gitfleet")
})

// A daemon is gitfleet as a user runs it: the built binary, a repository on a Git server, and
// real clusters. Its fleet name is unique, so that tests can share clusters.
type daemon struct {
	t       *testing.T
	fleet   *fleet.Fleet
	clients map[string]*kubernetes.Clientset
	members []string
	repo    githttp.Scratch
	git     *githttp.Server
	name    string // of the fleet, and of the namespace of its objects
	args    []string
	env     []string // in addition to the test's environment
	program func() (string, error)
	address string
	began   time.Time
	// timeout is how long until waits.
	timeout time.Duration

	command *exec.Cmd
	log     *os.File
}

// newDaemon creates a repository with the members of the fleet. It does not start the daemon.
func newDaemon(t *testing.T, args ...string) *daemon {
	t.Helper()
	return newDaemonOn(t, fleet.Shared(t), args...)
}

// newDaemonOn is newDaemon with clusters of the test's own.
func newDaemonOn(t *testing.T, f *fleet.Fleet, args ...string) *daemon {
	t.Helper()
	d := &daemon{t: t, fleet: f, clients: map[string]*kubernetes.Clientset{}, name: fleet.Namespace(t), began: time.Now(), timeout: 2 * time.Minute}
	d.git = githttp.Serve(t, githttp.Config{})
	d.repo = d.git.Repo(t, "hub.git")
	files := map[string]string{}
	for _, m := range f.Members() {
		client, err := kubernetes.NewForConfig(m.Config)
		if err != nil {
			t.Fatal(err)
		}
		d.clients[m.Name] = client
		d.members = append(d.members, m.Name)
		files["clusters/"+m.Name+".yaml"] = memberCluster(m.Name)
	}
	d.repo.Commit(t, "main", files)
	var err error
	if d.address, err = process.FreeAddress(); err != nil {
		t.Fatal(err)
	}
	d.args = append([]string{
		"run", "--url", d.git.URL("hub.git"), "--set", "source.allowHTTP=true", "--branch", "main", "--interval", "1s",
		"--state-dir", t.TempDir(), "--kubeconfig-dir", "", "--listen", d.address,
		"--fleet-name", d.name,
	}, args...)
	d.kubeconfigs(func(*clientcmdapi.Config) {})
	log, err := os.Create(filepath.Join(t.TempDir(), "daemon.log"))
	if err != nil {
		t.Fatal(err)
	}
	d.log = log
	t.Cleanup(func() {
		if t.Failed() {
			text, _ := os.ReadFile(log.Name())
			if at := bytes.Index(text, []byte("WARNING: DATA RACE")); at >= 0 {
				t.Logf("the race detector found:\n%s", text[at:min(len(text), at+8<<10)])
			}
			t.Logf("log of the daemon:\n%s", text[max(0, len(text)-8<<10):])
		}
	})
	return d
}

// user is the user that the daemon impersonates, which tells its requests from those of others.
func (d *daemon) user() string { return "daemon-of-" + d.name }

// state is the state directory.
func (d *daemon) state() string { return d.args[slices.Index(d.args, "--state-dir")+1] }

func memberCluster(name string) string {
	return `apiVersion: cluster.kubernetes-fleet.io/v1beta1
kind: MemberCluster
metadata:
  name: ` + name + `
  labels: {number: "` + name[len("member-"):] + `"}
spec:
  identity: {kind: User, name: gitfleet}
`
}

func (d *daemon) start() {
	d.t.Helper()
	program := d.program
	if program == nil {
		program = binary
	}
	path, err := program()
	if err != nil {
		d.t.Fatal(err)
	}
	d.command = exec.Command(path, d.args...)
	d.command.Env = append(os.Environ(), d.env...)
	d.command.Stdout, d.command.Stderr = d.log, d.log
	d.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := d.command.Start(); err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(d.stop)
}

// stop sends SIGTERM; the daemon must then end with status 0.
func (d *daemon) stop() { d.end(syscall.SIGTERM, "exit status 0") }

// kill sends SIGKILL.
func (d *daemon) kill() { d.end(syscall.SIGKILL, "signal: killed") }

func (d *daemon) end(signal os.Signal, want string) {
	d.t.Helper()
	if d.command == nil {
		return
	}
	d.command.Process.Signal(signal)
	d.command.Wait()
	if got := d.command.ProcessState.String(); got != want {
		d.t.Errorf("the daemon ended with %s, want %s", got, want)
	}
	d.command = nil
}

// report requests the daemon's report; nil if it does not answer.
func (d *daemon) report() *status.Report {
	resp, err := http.Get("http://" + d.address + "/report")
	if err != nil {
		return nil
	}
	defer resp.Body.Close()
	r := &status.Report{}
	if resp.StatusCode != http.StatusOK || json.NewDecoder(resp.Body).Decode(r) != nil {
		return nil
	}
	return r
}

// until waits for a report that satisfies a condition.
func (d *daemon) until(what string, ok func(*status.Report) bool) *status.Report {
	d.t.Helper()
	var last *status.Report
	for deadline := time.Now().Add(d.timeout); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if last = d.report(); last != nil {
			scenario.CheckReport(d.t, last)
			if ok(last) {
				return last
			}
		}
	}
	text, _ := json.MarshalIndent(last, "", " ")
	d.t.Fatalf("not %s; last report:\n%s", what, text)
	return nil
}

// applied waits until every placement has applied a commit, on all of its clusters.
func (d *daemon) applied(commit string) *status.Report {
	d.t.Helper()
	return d.until("applied at "+commit, func(r *status.Report) bool {
		return r.Source.InForce.Hash == commit && len(r.Placements) > 0 && !strings.Contains(fmt.Sprint(notApplied(r)), "crp/")
	})
}

// notApplied lists the placements that are not applied on all clusters.
func notApplied(r *status.Report) []string {
	var out []string
	for _, p := range r.Placements {
		if conditionStatus(p.Status.Conditions, api.PlacementPrefix+api.Applied) != metav1.ConditionTrue {
			out = append(out, "crp/"+p.Name)
		}
	}
	return out
}

func conditionStatus(cs []metav1.Condition, typ string) metav1.ConditionStatus {
	for _, c := range cs {
		if c.Type == typ {
			return c.Status
		}
	}
	return ""
}

// reads reports whether a line of asked is a request that writes nothing.
func reads(line string) bool {
	return strings.HasPrefix(line, "get ") || strings.HasPrefix(line, "list ")
}

// asked lists this daemon's requests to a cluster since a time, from the cluster's audit log:
// for objects of the test's namespace, and for its inventories. Watches and probes are omitted.
func (d *daemon) asked(cluster string, since time.Time) (objects, inventories []string) {
	d.t.Helper()
	events, err := d.fleet.Audit(cluster, since)
	if err != nil {
		d.t.Fatal(err)
	}
	for _, e := range events {
		if e.Impersonated.Username != d.user() || e.Verb == "watch" {
			continue
		}
		line := fmt.Sprintf("%s %s %s/%s %d", e.Verb, e.Object.Resource, e.Object.Namespace, e.Object.Name, e.Response.Code)
		switch {
		case e.Object.Resource == "":
			// readiness, version, discovery
		case e.Object.Namespace == api.Namespace:
			if strings.Contains(e.URI, "labelSelector") || strings.Contains(e.Object.Name, "inventory-") {
				inventories = append(inventories, line)
			}
		case e.Verb == "list" && (e.Object.Resource == "nodes" || e.Object.Resource == "pods" || e.Object.Resource == "namespaces") && !strings.Contains(e.URI, "labelSelector"):
			// the probe's count of nodes, pods and namespaces
		default:
			objects = append(objects, line)
		}
	}
	return objects, inventories
}

// waitForAuditLog waits until the cluster's audit log has caught up, and returns the time.
func (d *daemon) waitForAuditLog() time.Time {
	time.Sleep(300 * time.Millisecond) // events are logged after the response
	return time.Now()
}

func (d *daemon) configMap(cluster, name string) map[string]string {
	cm, err := d.clients[cluster].CoreV1().ConfigMaps(d.name).Get(context.Background(), name, metav1.GetOptions{})
	if err != nil {
		return nil
	}
	return cm.Data
}

func (d *daemon) eventually(what string, ok func() bool) {
	d.t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if ok() {
			return
		}
	}
	d.t.Fatalf("not %s", what)
}

// Manifests, as users write them.

func yamlNamespace(name string) string {
	return "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: " + name + "\n"
}

func yamlConfigMap(namespace, name, value string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: " + name + "\n  namespace: " + namespace + "\ndata:\n  value: \"" + value + "\"\n"
}

func yamlDeployment(namespace, name string, replicas int) string {
	return fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata:
  name: %s
  namespace: %s
spec:
  replicas: %d
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec:
      containers:
      - {name: main, image: "registry.example/app:1", ports: [{containerPort: 80}]}
`, name, namespace, replicas)
}

func yamlPlacement(name, namespace, policy string) string {
	return `apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterResourcePlacement
metadata:
  name: ` + name + `
spec:
  resourceSelectors:
  - {group: "", version: v1, kind: Namespace, name: ` + namespace + `}
` + policy
}
