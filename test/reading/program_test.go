package reading

import (
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
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"

	"github.com/gitfleet/gitfleet/reconciler/history"
	"github.com/gitfleet/gitfleet/test/checkout"
	"github.com/gitfleet/gitfleet/test/githttp"
	"github.com/gitfleet/gitfleet/test/process"
)

// A program is the built gitfleet with a repository on a Git server. It has no cluster, since
// reading needs none.
type program struct {
	t       *testing.T
	repo    githttp.Scratch
	address string
	args    []string
	log     *os.File
	running *process.Process
}

// gitfleet builds the program once.
var gitfleet = sync.OnceValues(func() (string, error) {
	path, err := filepath.Abs("../../build/reading/gitfleet")
	if err != nil {
		return "", err
	}
	root, err := checkout.Root()
	if err != nil {
		return "", err
	}
	return path, checkout.Build(context.Background(), root, nil, path, "./cmd/gitfleet")
})

func newProgram(t *testing.T) *program {
	t.Helper()
	if testing.Short() {
		t.Skip("builds gitfleet")
	}
	dir := t.TempDir()
	kubeconfigs := filepath.Join(dir, "kubeconfigs")
	if err := os.Mkdir(kubeconfigs, 0o700); err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			text, _ := os.ReadFile(log.Name())
			t.Logf("log of the daemon:\n%s", text[max(0, len(text)-8<<10):])
		}
	})
	address, err := process.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	git := githttp.Serve(t, githttp.Config{})
	p := &program{t: t, repo: git.Repo(t, "hub.git"), address: address, log: log}
	p.args = []string{
		"run", "--url", git.URL("hub.git"), "--set", "source.allowHTTP=true", "--branch", "main", "--interval", "1s",
		"--state-dir", filepath.Join(dir, "state"), "--kubeconfig-dir", kubeconfigs, "--listen", p.address,
	}
	return p
}

func (p *program) start() {
	p.t.Helper()
	path, err := gitfleet()
	if err == nil {
		p.running, err = process.Start(p.log, append([]string{path}, p.args...)...)
	}
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(p.stop)
}

// stop ends the daemon with SIGTERM.
func (p *program) stop() {
	p.t.Helper()
	if p.running == nil {
		return
	}
	if err := p.running.Stop(); err != nil {
		p.t.Errorf("the daemon ended with %v", err)
	}
	p.running = nil
}

// commit commits the placement web with a policy and new content, and waits until the commit is
// in force.
func (p *program) commit(policy, value string) string {
	p.t.Helper()
	hash := p.repo.Commit(p.t, "main", map[string]string{
		"web.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: web, labels: {value: " + value + "}}\n",
		"placements/web.yaml": "apiVersion: placement.kubernetes-fleet.io/v1beta1\nkind: ClusterResourcePlacement\nmetadata: {name: web}\nspec:\n" +
			"  resourceSelectors: [{group: \"\", version: v1, kind: Namespace, name: web}]\n  policy: " + policy + "\n",
	})
	p.inForce(hash)
	return hash
}

func (p *program) inForce(hash string) {
	p.t.Helper()
	p.eventually("in force: "+hash, func() bool {
		resp, err := http.Get("http://" + p.address + "/report")
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		var r struct {
			Source struct{ InForce struct{ Hash string } }
		}
		return json.NewDecoder(resp.Body).Decode(&r) == nil && r.Source.InForce.Hash == hash
	})
}

func (p *program) eventually(what string, ok func() bool) {
	p.t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if ok() {
			return
		}
	}
	p.t.Fatalf("not %s", what)
}

// cli runs a gitfleet command against the daemon.
func (p *program) cli(line string) (out string, code int) {
	p.t.Helper()
	path, err := gitfleet()
	if err != nil {
		p.t.Fatal(err)
	}
	cmd := exec.CommandContext(p.t.Context(), path, strings.Fields(line)...)
	cmd.Env = append(os.Environ(), "GITFLEET_SERVER=http://"+p.address)
	text, _ := cmd.CombinedOutput()
	return string(text), cmd.ProcessState.ExitCode()
}

const (
	pickAll = "{placementType: PickAll}"
	pickOne = "{placementType: PickN, numberOfClusters: 1}"
)

// Clients of the built daemon continue after a restart: kubectl with the kubeconfig that
// gitfleet writes, and an informer, which has to list again.
func TestClientsContinueAfterARestart(t *testing.T) {
	p := newProgram(t)
	p.start()
	p.commit(pickAll, "one")
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if out, code := p.cli("kubeconfig -f " + kubeconfig); code != 0 {
		t.Fatalf("gitfleet kubeconfig: %d %s", code, out)
	}
	kubectl := openAt(t, kubeconfig)
	want := func(line, want string) {
		t.Helper()
		if got := kubectl.run(line); got != want {
			t.Errorf("$ %s\n%s\nwant:\n%s", line, got, want)
		}
	}
	generation := `kubectl get crp web -o jsonpath='{.metadata.generation} {.spec.policy.placementType}'`
	want(generation, "1 PickAll")

	client, err := dynamic.NewForConfig(&rest.Config{Host: "http://" + p.address, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	list, err := client.Resource(crp).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	informer := dynamicinformer.NewDynamicSharedInformerFactory(client, 0).ForResource(crp).Informer()
	ended := make(chan struct{})
	go func() { defer close(ended); informer.RunWithContext(ctx) }()
	defer func() { cancel(); <-ended }()
	p.eventually("listed", func() bool { return has(informer.GetStore(), map[string]int64{"web": 1}) })
	p.commit(pickOne, "one")
	p.eventually("exported of a change", func() bool { return has(informer.GetStore(), map[string]int64{"web": 2}) })

	p.stop()
	p.start()
	p.commit(pickAll, "two")
	p.eventually("exported of a change after a restart", func() bool { return has(informer.GetStore(), map[string]int64{"web": 3}) })
	want(generation, "3 PickAll")
	w, err := client.Resource(crp).Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
	if err == nil {
		e := <-w.ResultChan()
		w.Stop()
		err = apierrors.FromObject(e.Object)
	}
	if !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
		t.Errorf("a version from before the restart: %v", err)
	}
}

// The history has the changes of two commits, also when the daemon was restarted in between, and
// can be exported completely.
func TestHistorySurvivesARestart(t *testing.T) {
	p := newProgram(t)
	p.start()
	first := p.commit(pickAll, "one")
	p.stop()
	p.start()
	second := p.commit(pickAll, "two")
	p.stop()
	p.start()
	p.inForce(second)

	out, code := p.cli("history crp/web -o json")
	var list struct {
		Items []struct{ Revision, Commit string }
	}
	err := json.Unmarshal([]byte(out), &list)
	revisions := list.Items
	if err != nil || code != 0 || len(revisions) != 2 || revisions[1].Commit != second || revisions[0].Commit != first || revisions[1].Revision != "1" {
		t.Errorf("the revisions: %d %s", code, out)
	}
	out, code = p.cli("history --export")
	var exported []string
	for line := range strings.Lines(out) {
		var e history.Entry
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if e.Kind == history.Commit || e.Kind == history.Placement {
			exported = append(exported, fmt.Sprintf("%s %s", e.Event, e.Commit))
		}
	}
	want := []string{"inForce " + first, "revised " + first, "inForce " + second, "revised " + second}
	if slices.Sort(exported); code != 0 || !slices.Equal(exported, slices.Sorted(slices.Values(want))) {
		t.Errorf("exported: %d %q", code, exported)
	}
	for _, test := range []struct {
		commit, says string
		code         int
	}{
		{second, "crp/web is not applied: the commit has no MemberCluster", 1},
		{first, "crp/web is not applied: the commit has no MemberCluster", 1}, // in force below the second
		{strings.Repeat("0", 40), "is not in force yet", 1},
	} {
		if out, code := p.cli("wait crp/web --for=applied --timeout 1ms --commit " + test.commit); code != test.code || !strings.Contains(out, test.says) {
			t.Errorf("wait for %s: %d %s", test.commit, code, out)
		}
	}
}
